// Tokenizer files that lower-case, made to keep the case.
#include <fmt/format.h>

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/json.hpp"
#include "base/text_splice.hpp"
#include "surgery/vocabulary/json_elements.hpp"
#include "surgery/vocabulary/vocabulary_spelling.hpp"

namespace masque::surgery {

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
