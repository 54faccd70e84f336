#include "surgery/vocabulary/vocabulary_spelling.hpp"

#include <algorithm>
#include <map>
#include <unordered_set>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/file/file.hpp"
#include "base/json/json.hpp"
#include "base/string/text_splice.hpp"
#include "store/gguf/gguf_names.hpp"
#include "surgery/vocabulary/json_elements.hpp"
#include "text/unicode/unicode.hpp"
#include "text/unicode/utf8.hpp"

namespace masque::surgery {

namespace {

constexpr std::string_view kContinues = "##";
constexpr char32_t kEndOfCased = 0x1E944;  // after Adlam, the last script with case
constexpr std::uint64_t kMostMultiple = 1 << 24;

[[noreturn]] void refuse_spelling(const VocabularyState& state, const std::string& message) {
  throw InputError(state.checkpoint.path(), message);
}

/// Lower case → the first character of which it is the lower case.
const std::map<char32_t, char32_t>& capitals() {
  static const std::map<char32_t, char32_t> kCapitals = [] {
    std::map<char32_t, char32_t> out;
    for (char32_t c = 0; c < kEndOfCased; ++c) {
      const std::u32string_view lower = text::lower_case(c);
      if (lower.size() == 1) out.emplace(lower[0], c);
    }
    return out;
  }();
  return kCapitals;
}

/// `word` with its first character or all of them in capitals.
std::string capitalised(std::string_view word, bool all) {
  std::string out;
  while (!word.empty()) {
    char32_t c = 0;
    const auto size = static_cast<std::size_t>(std::max(1, decode_utf8(word, c)));
    const auto capital = capitals().find(c);
    if (capital != capitals().end() && (all || out.empty())) {
      text::append_utf8(out, capital->second);
    } else {
      out += word.substr(0, size);
    }
    word.remove_prefix(size);
  }
  return out;
}

bool is_one_letter(std::string_view word) {
  char32_t c = 0;
  return !word.empty() && static_cast<std::size_t>(decode_utf8(word, c)) == word.size();
}

/// The cased forms of a token, without itself.
std::vector<std::string> forms_of(std::string_view token, bool upper) {
  const bool continues = token.starts_with(kContinues) && token.size() > kContinues.size();
  const std::string_view word = continues ? token.substr(kContinues.size()) : token;
  std::vector<std::string> out;
  if (word.starts_with('[') || word.starts_with('<')) return out;
  const auto add = [&](const std::string& form) {
    std::string whole = (continues ? std::string(kContinues) : std::string()) + form;
    if (whole != token && std::ranges::find(out, whole) == out.end()) out.push_back(whole);
  };
  if (!continues || is_one_letter(word)) add(capitalised(word, false));
  if (upper) add(capitalised(word, true));
  return out;
}

}  // namespace

std::pair<std::string, std::string> parse_renaming(const VocabularyState& state,
                                                   const std::string& text) {
  bool any = false;
  for (std::size_t at = text.find('='); at != std::string::npos; at = text.find('=', at + 1)) {
    if (at == 0 || at + 1 == text.size()) continue;
    any = true;
    std::string old = text.substr(0, at);
    if (state.names.id(old)) return {std::move(old), text.substr(at + 1)};
  }
  if (!any) throw UsageError(fmt::format("found '{}', expected OLD=NEW", escape(text)));
  refuse_spelling(state,
                  fmt::format("'{}': no such token{}", escape(text.substr(0, text.find('=', 1))),
                              state.names.empty() ? "" : " in " + state.names.source()));
}

VocabularyChange plan_rename(const VocabularyState& state,
                             const std::vector<std::pair<std::string, std::string>>& names) {
  if (!state.checkpoint.is_folder() && state.names.source() != store::kGgufTokens)
    refuse_spelling(state, "a lone file has no tokenizer: expected a folder");
  VocabularyChange change = all_rows(state);
  std::unordered_set<std::uint64_t> seen;
  for (const auto& [old, now] : names) {
    const auto id = state.names.id(old);
    if (!id) refuse_spelling(state, fmt::format("'{}': no such token", escape(old)));
    if (!seen.insert(*id).second)
      refuse_spelling(state, fmt::format("'{}' is listed twice", escape(old)));
    check_token(state, now);
    change.tokens[*id] = now;
  }
  return change;
}

VocabularyChange plan_case(const VocabularyState& state, const CaseOptions& options) {
  if (options.multiple == 0 || options.multiple > kMostMultiple)
    refuse_spelling(state, fmt::format("{}: found {}, expected a number from 1 to {}",
                                       field("multiple"), options.multiple, kMostMultiple));
  VocabularyChange change = all_rows(state);
  std::unordered_set<std::uint64_t> special;
  for (const std::string_view role : kTokenRoles)
    if (const auto id = state.names.role(role)) special.insert(*id);
  // After the last token, also in rows that have none yet.
  std::uint64_t next = std::min<std::uint64_t>(state.names.size(), state.rows);
  std::unordered_set<std::string> made;
  for (std::uint64_t id = 0; id < std::min<std::uint64_t>(state.names.size(), state.rows); ++id) {
    const std::string& token = state.names.token(id);
    if (special.contains(id) || is_unused_token(token) || state.names.id(token) != id) continue;
    for (const std::string& form : forms_of(token, options.upper)) {
      if (state.names.id(form) || !made.insert(form).second) continue;
      if (next == change.from.size()) {
        change.from.push_back(id);
        change.tokens.push_back(form);
      } else {
        change.from[next] = id;
        change.tokens[next] = form;
      }
      ++next;
    }
  }
  if (made.empty()) refuse_spelling(state, "no token lacks a cased form: nothing to add");
  const std::uint64_t rest = change.from.size() % options.multiple;
  const std::uint64_t more = rest == 0 ? 0 : options.multiple - rest;
  change.from.resize(change.from.size() + more, VocabularyChange::kNew);
  change.tokens.resize(change.from.size());
  state.notes.push_back(
      fmt::format("{} cased forms are added, as copies of their lower-case rows", made.size()));
  return change;
}

// Tokenizer files that lower-case, made to keep the case.

namespace {

bool is_word(const JsonValue* value, std::string_view word) {
  return value != nullptr && value->text == word;
}

/// Sets a member of an object that a splice reaches; adds it if it is missing.
void set_member(const std::string& text, const JsonValue& object, std::string_view name,
                const std::string& value, TextSplice& splice) {
  if (const JsonValue* member = object.find(name)) {
    splice.replace(member->begin, member->end, value);
    return;
  }
  const JsonMember& last = object.members.back();
  splice.replace(last.value.end, last.value.end,
                 fmt::format(", {}", new_member(text, object, name, value)));
}

/// A normalizer and those in it. Returns whether one of them lower-cased.
bool keep_case_in(const std::string& text, const JsonValue& normalizer, TextSplice& splice) {
  const JsonValue* type = normalizer.find("type");
  if (is_word(type, "BertNormalizer")) {
    if (!is_word(normalizer.find("lowercase"), "true")) return false;
    const JsonValue* strip = normalizer.find("strip_accents");
    set_member(text, normalizer, "lowercase", "false", splice);
    if (strip == nullptr || strip->is(JsonKind::kNull))
      set_member(text, normalizer, "strip_accents", "true", splice);
    return true;
  }
  const JsonValue* parts = normalizer.find("normalizers");
  if (parts == nullptr) return false;
  bool found = false;
  std::vector<std::string> kept;
  for (const JsonValue& part : parts->items) {
    if (is_word(part.find("type"), "Lowercase")) {
      found = true;
      continue;
    }
    TextSplice inner;
    found |= keep_case_in(text, part, inner);
    kept.push_back(inner.apply(text, part.begin, part.end));
  }
  set_elements(text, *parts, kept, splice);
  return found;
}

bool keep_case_in_tokenizer_json(CheckpointEdit& edit, const std::string& text) {
  const std::string path = join(edit.checkpoint().folder(), "tokenizer.json");
  const JsonValue root = parse_json_file(text, path);
  const JsonValue* normalizer = root.find("normalizer");
  TextSplice splice;
  if (normalizer == nullptr || !keep_case_in(text, *normalizer, splice)) return false;
  edit.set_file("tokenizer.json", splice.apply(text));
  return true;
}

}  // namespace

std::vector<std::string> keep_case(CheckpointEdit& edit) {
  constexpr const char* kConfig = "tokenizer_config.json";
  const std::string& folder = edit.checkpoint().folder();
  const auto json = edit.file_text("tokenizer.json");
  if (!json && !edit.file_text("vocab.txt"))
    throw InputError(folder, "no WordPiece vocabulary: expected tokenizer.json or vocab.txt");
  std::string config = edit.file_text(kConfig).value_or("{}\n");
  const JsonValue root = parse_json_file(config, join(folder, kConfig));
  const bool lowers = json ? keep_case_in_tokenizer_json(edit, *json)
                           : !is_word(root.find("do_lower_case"), "false");
  if (!lowers) throw InputError(folder, "the tokenizer does not lower-case: nothing to do");
  const JsonValue* strip = root.find("strip_accents");
  config = set_json_member(config, {"do_lower_case"}, "false");
  const bool follows = strip == nullptr || strip->is(JsonKind::kNull);
  if (follows) config = set_json_member(config, {"strip_accents"}, "true");
  edit.set_file(kConfig, config);
  constexpr const char* kSentence = "sentence_bert_config.json";
  if (const auto sentence = edit.file_text(kSentence)) {
    const JsonValue settings = parse_json_file(*sentence, join(folder, kSentence));
    if (is_word(settings.find("do_lower_case"), "true"))
      edit.set_file(kSentence, set_json_member(*sentence, {"do_lower_case"}, "false"));
  }
  return {fmt::format(
      "the tokenizer no longer lower-cases text; it {}",
      follows || is_word(strip, "true") ? "still removes accents" : "still keeps accents")};
}

}  // namespace masque::surgery
