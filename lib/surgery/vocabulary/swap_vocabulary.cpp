#include "surgery/vocabulary/swap_vocabulary.hpp"

#include <algorithm>
#include <array>
#include <unordered_map>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/file/file.hpp"
#include "base/json/json.hpp"
#include "text/open/tokenizer_files.hpp"

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
         a.parts().word_prefix == b.parts().word_prefix &&
         a.parts().word_suffix == b.parts().word_suffix;
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

/// In this order a new token with several roles takes the row of one of them: GPT-2's one token is
/// all three of the last ones, and stands where texts begin.
constexpr std::array<std::string_view, 7> kRowOfRole{
    "cls_token", "sep_token", "mask_token", "bos_token", "eos_token", "pad_token", "unk_token"};

JsonValue config_in(const std::string& folder) {
  const std::string path = join(folder, "config.json");
  return exists(path) ? parse_json_file(read(path), path) : JsonValue();
}

/// The tokens of a checkpoint by what they write.
class OldForms {
 public:
  OldForms(const TokenForms& forms, const text::Tokenizer& tokenizer,
           const VocabularyState& state) {
    const TokenNames& names = state.names;
    for (std::uint64_t id = 0; id < std::min<std::uint64_t>(names.size(), state.rows); ++id) {
      const std::string& token = names.token(id);
      if (names.id(token) != id || names.special(id)) continue;
      const auto known = tokenizer.find(token);
      if (!known) continue;
      const std::vector<TokenForm> written = forms.of(*known, token);
      for (std::size_t i = 0; i < written.size(); ++i) {
        if (written[i].unused) continue;
        auto& map = written[i].byte ? bytes_ : i == 0 ? first_ : other_;
        map.emplace(written[i].text, id);
      }
    }
  }

  /// The old token that writes what a new one with these forms does.
  std::optional<std::uint64_t> find(const std::vector<TokenForm>& written) const {
    for (std::size_t i = 0; i < written.size(); ++i) {
      const TokenForm& form = written[i];
      // A byte is a token of its own only where no other token writes it.
      for (const Map* map : form.byte ? std::array{&bytes_, &first_} : std::array{&first_, &bytes_})
        if (const auto found = map->find(form.text); found != map->end()) return found->second;
      if (i > 0) continue;
      if (const auto found = other_.find(form.text); found != other_.end()) return found->second;
    }
    return std::nullopt;
  }

 private:
  using Map = std::unordered_map<std::string, std::uint64_t>;
  Map first_;  ///< by the usual form
  Map other_;  ///< by a further form
  Map bytes_;  ///< tokens of byte fallback
};

}  // namespace

NewTokenizer::NewTokenizer(const std::string& path)
    : path_(path),
      is_folder_(is_folder(path)),
      names_(is_folder_ ? TokenNames::load(path) : TokenNames::read(path)),
      tokenizer_(text::Tokenizer::open(path)),
      forms_(tokenizer_),
      config_(is_folder_ ? config_in(path) : JsonValue()) {
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
  const text::Tokenizer old_tokenizer = text::Tokenizer::open(state.checkpoint.folder());
  const TokenForms old_forms(old_tokenizer);
  const OldForms old(old_forms, old_tokenizer, state);
  const bool alike_marks = same_kind(tokenizer_, old_tokenizer);
  const bool ends = !tokenizer_.parts().word_suffix.empty();
  if (ends != !old_tokenizer.parts().word_suffix.empty()) {
    state.notes.push_back(fmt::format(
        "tokens of the {} tokenizer mark the ends of words, those of the other one do not: '{}' is "
        "taken for a whole word, a token without it for a part",
        ends ? "new" : "old",
        escape("the" + (ends ? tokenizer_ : old_tokenizer).parts().word_suffix)));
  }
  VocabularyChange change;
  change.from.assign(names_.size(), VocabularyChange::kNew);
  change.tokens.resize(names_.size());
  std::uint64_t alike = 0;
  std::uint64_t respelled = 0;
  for (std::uint64_t id = 0; id < names_.size(); ++id) {
    const std::string& token = change.tokens[id] = names_.token(id);
    if (token.empty()) continue;
    const auto known = tokenizer_.find(token);
    std::vector<TokenForm> written;
    if (known && !names_.special(id)) written = forms_.of(*known, token);
    std::optional<std::uint64_t> row;
    if (alike_marks || written.empty()) row = state.names.id(token);
    if (row && *row >= state.rows) row.reset();
    if (!row) row = old.find(written);
    if (!row) continue;
    change.from[id] = *row;
    ++alike;
    if (state.names.token(*row) != token) ++respelled;
  }
  for (const std::string_view role : kRowOfRole) {
    const auto id = names_.role(role);
    const auto row = state.names.role(role);
    if (!id || !row || change.from[*id] != VocabularyChange::kNew) continue;
    change.from[*id] = *row;
    state.notes.push_back(fmt::format("{}: '{}' gets the row of '{}'", role,
                                      escape(names_.token(*id)), escape(state.names.token(*row))));
  }
  state.notes.push_back(fmt::format(
      "{} of {} tokens are also in the old vocabulary{}", alike, names_.size(),
      respelled == 0 ? "" : fmt::format(", {} of them with another spelling", respelled)));
  const std::uint64_t rest = change.from.size() % multiple;
  change.from.resize(change.from.size() + (rest == 0 ? 0 : multiple - rest),
                     VocabularyChange::kNew);
  change.tokens.resize(change.from.size());
  return change;
}

RowMeans NewTokenizer::pieces(const RowInitContext& context) const {
  const text::Tokenizer old = text::Tokenizer::open(context.checkpoint.folder());
  const TokenForms old_forms(old);
  RowMeans out;
  std::uint64_t without = 0;
  for (std::uint64_t id = 0; id < context.change.from.size(); ++id) {
    if (context.change.from[id] != VocabularyChange::kNew) continue;
    const std::string token = id < names_.size() ? names_.token(id) : "";
    const auto known = token.empty() ? std::nullopt : tokenizer_.find(token);
    const std::vector<TokenForm> written =
        known ? forms_.of(*known, token) : std::vector<TokenForm>();
    TokenForms::Pieces pieces;
    if (!token.empty()) pieces = old_forms.pieces(written.empty() ? token : written[0].text);
    const auto beyond = [&](std::uint64_t piece) { return piece >= context.rows; };
    if (!pieces.known || std::ranges::any_of(pieces.ids, beyond)) pieces.ids.clear();
    if (pieces.ids.empty() && id < names_.size()) ++without;
    out.push_back(std::move(pieces.ids));
  }
  if (without > 0 && context.notes != nullptr) {
    context.notes->push_back(
        fmt::format("{} new tokens have pieces that the old tokenizer does not know: they get the "
                    "mean of all rows",
                    without));
  }
  return out;
}

std::optional<std::uint64_t> NewTokenizer::id_of_role(std::string_view name) const {
  constexpr std::string_view kEnd = "_id";
  if (!name.ends_with(kEnd)) return std::nullopt;
  if (const auto id = names_.role(name.substr(0, name.size() - kEnd.size()))) return id;
  const JsonValue* value = config_.find(name);
  const auto id = value == nullptr ? std::nullopt : value->integer();
  return id && *id < names_.size() ? id : std::nullopt;
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
