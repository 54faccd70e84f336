#include "surgery/vocabulary/swap_vocabulary.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/file.hpp"
#include "base/json.hpp"
#include "text/tokenizer_files.hpp"

namespace masque::surgery {

namespace {

constexpr std::uint64_t kMostFileBytes = 1 << 30;
constexpr std::uint64_t kMostMultiple = 1 << 24;
/// Files that hold ids, except SentencePiece's: none of the old tokenizer may stay.
constexpr std::array<const char*, 5> kVocabularies{"tokenizer.json", "vocab.txt", "vocab.json",
                                                   "merges.txt", "added_tokens.json"};
constexpr const char* kConfig = "tokenizer_config.json";
constexpr const char* kMap = "special_tokens_map.json";

std::string read(const std::string& path) { return InputFile::open(path).read_all(kMostFileBytes); }

bool same_kind(const text::Tokenizer& a, const text::Tokenizer& b) {
  return a.parts().word_mark == b.parts().word_mark &&
         a.parts().word_prefix == b.parts().word_prefix;
}

bool is_text(const JsonValue* value) { return value != nullptr && value->is(JsonKind::kString); }

/// The class that transformers reads a tokenizer with whose tokenizer_config.json names none;
/// empty if it cannot be determined. `model` is the config.json next to it.
std::string class_of(const text::Tokenizer& tokenizer, const JsonValue& model) {
  if (const JsonValue* name = model.find("tokenizer_class"); is_text(name)) return name->text;
  if (const JsonValue* type = model.find("model_type"); is_text(type)) {
    if (std::string name = text::tokenizer_class_of_model(type->text); !name.empty()) return name;
  }
  const bool wordpiece = tokenizer.parts().word_mark == text::WordMark::kContinuation;
  return wordpiece ? "BertTokenizer" : "";
}

/// `config` with a tokenizer_class: without it transformers would take the one that belongs to the
/// checkpoint's model.
std::string with_class(const std::string& config, const std::string& name,
                       std::vector<std::string>& notes) {
  if (name.empty()) {
    notes.push_back(fmt::format(
        "{} has no tokenizer_class: transformers uses the default of the model type", kConfig));
    return config;
  }
  notes.push_back(fmt::format("{} has no tokenizer_class: set to {}", kConfig, escape(name)));
  return set_json_member(config, {"tokenizer_class"}, quote_json(name));
}

}  // namespace

NewTokenizer::NewTokenizer(const std::string& path)
    : path_(path),
      is_folder_(is_folder(path)),
      names_(is_folder_ ? TokenNames::load(path) : TokenNames::read(path)),
      tokenizer_(text::Tokenizer::open(path)) {
  if (names_.empty()) {
    throw InputError(path, "no tokenizer.json, vocab.txt or vocab.json, expected one of them");
  }
}

VocabularyChange NewTokenizer::plan(const VocabularyState& state, std::uint64_t multiple) const {
  const auto refuse = [&](const std::string& message) {
    throw InputError(state.checkpoint.path(), message);
  };
  if (!state.checkpoint.is_folder()) refuse("a lone file has no tokenizer: expected a folder");
  check_editable(state.checkpoint, state.names);
  if (state.names.empty()) refuse("no tokenizer file, expected one to match old and new tokens");
  if (multiple == 0 || multiple > kMostMultiple)
    refuse(fmt::format("{}: found {}, expected a number from 1 to {}", field("multiple"), multiple,
                       kMostMultiple));
  VocabularyChange change;
  change.from.assign(names_.size(), VocabularyChange::kNew);
  change.tokens.resize(names_.size());
  std::uint64_t alike = 0;
  for (std::uint64_t id = 0; id < names_.size(); ++id) {
    change.tokens[id] = names_.token(id);
    const auto old = state.names.id(names_.token(id));
    if (!old || names_.token(id).empty()) continue;
    change.from[id] = *old;
    ++alike;
  }
  for (const std::string_view role : kTokenRoles) {
    const auto id = names_.role(role);
    const auto old = state.names.role(role);
    if (!id || !old || change.from[*id] != VocabularyChange::kNew) continue;
    change.from[*id] = *old;
    state.notes.push_back(fmt::format("{}: '{}' gets the row of '{}'", role,
                                      escape(names_.token(*id)), escape(state.names.token(*old))));
  }
  state.notes.push_back(
      fmt::format("{} of {} tokens are also in the old vocabulary", alike, names_.size()));
  const std::uint64_t rest = change.from.size() % multiple;
  change.from.resize(change.from.size() + (rest == 0 ? 0 : multiple - rest),
                     VocabularyChange::kNew);
  change.tokens.resize(change.from.size());
  return change;
}

std::string NewTokenizer::text_of(std::uint64_t id) const {
  const text::TokenizerParts& parts = tokenizer_.parts();
  const std::string& token = names_.token(id);
  if (token.empty() || tokenizer_.added().find(token) != nullptr) return token;
  std::string_view rest = token;
  const bool marked = !parts.word_prefix.empty() && rest.starts_with(parts.word_prefix);
  if (marked) rest.remove_prefix(parts.word_prefix.size());
  if (parts.word_mark == text::WordMark::kContinuation) return std::string(rest);
  std::string text = tokenizer_.decode({static_cast<TokenId>(id)}, false);
  if (marked && !text.starts_with(' ')) text.insert(0, " ");
  return text;
}

RowMeans NewTokenizer::pieces(const RowInitContext& context) const {
  const text::Tokenizer old = text::Tokenizer::open(context.checkpoint.folder());
  const auto unknown = old.roles().unk;
  text::IdEncoder encoder = old.id_encoder({});
  RowMeans out;
  std::vector<TokenId> ids;
  std::uint64_t without = 0;
  for (std::uint64_t id = 0; id < context.change.from.size(); ++id) {
    if (context.change.from[id] != VocabularyChange::kNew) continue;
    ids.clear();
    const std::string text = id < names_.size() ? text_of(id) : "";
    // A token of half a character has no text of its own.
    if (text.find("\xEF\xBF\xBD") == std::string::npos) encoder.encode(text, ids);
    const auto bad = [&](TokenId piece) {
      return piece == unknown || static_cast<std::uint64_t>(piece) >= context.rows;
    };
    if (std::ranges::any_of(ids, bad)) ids.clear();
    if (ids.empty() && id < names_.size()) ++without;
    out.emplace_back(ids.begin(), ids.end());
  }
  if (without > 0 && context.notes != nullptr) {
    context.notes->push_back(
        fmt::format("{} new tokens have pieces that the old tokenizer does not know: they get the "
                    "mean of all rows",
                    without));
  }
  return out;
}

std::vector<std::string> NewTokenizer::write(CheckpointEdit& edit, const TokenNames& before) const {
  std::vector<std::string> notes;
  const auto source = [&](const std::string& name) -> std::optional<std::string> {
    if (is_folder_) {
      const std::string path = join(path_, name);
      return exists(path) ? std::optional(read(path)) : std::nullopt;
    }
    const bool json = path_.ends_with(".json");
    const std::string mine = base_name(path_) == "vocab.json" ? "vocab.json"
                             : json                           ? "tokenizer.json"
                                                              : "vocab.txt";
    return name == mine ? std::optional(read(path_)) : std::nullopt;
  };
  const auto put = [&](const char* name) {
    if (auto text = source(name)) {
      edit.set_file(name, std::move(*text));
    } else if (edit.file_text(name)) {
      edit.drop_file(name);
      notes.push_back(fmt::format("'{}' of the old tokenizer is not copied", name));
    }
  };
  std::ranges::for_each(kVocabularies, put);
  std::ranges::for_each(text::kSpieceFiles, put);
  if (auto config = source(kConfig)) {
    if (!is_text(parse_json_file(*config, join(path_, kConfig)).find("tokenizer_class"))) {
      const auto model = source("config.json");
      const JsonValue settings =
          model ? parse_json_file(*model, join(path_, "config.json")) : JsonValue();
      config = with_class(*config, class_of(tokenizer_, settings), notes);
    }
    edit.set_file(kConfig, std::move(*config));
    if (auto map = source(kMap)) {
      edit.set_file(kMap, std::move(*map));
    } else if (edit.file_text(kMap)) {
      edit.drop_file(kMap);
    }
    return notes;
  }
  const std::string& folder = edit.checkpoint().folder();
  if (!same_kind(tokenizer_, text::Tokenizer::open(folder))) {
    throw InputError(
        path_,
        fmt::format(
            "is a tokenizer of another kind than the one in '{}': use a folder that has its own {}",
            escape(folder), kConfig));
  }
  for (const std::string_view role : kTokenRoles) {
    const auto old = before.role(role);
    if (!old || names_.id(before.token(*old))) continue;
    throw InputError(
        path_,
        fmt::format("has no token '{}', which is the {} of '{}': use a folder that has its own {}",
                    escape(before.token(*old)), role, escape(folder), kConfig));
  }
  if (const auto config = edit.file_text(kConfig))
    edit.set_file(kConfig, erase_json_member(*config, {"added_tokens_decoder"}));
  return notes;
}

}  // namespace masque::surgery
