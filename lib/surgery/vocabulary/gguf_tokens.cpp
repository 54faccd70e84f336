#include "surgery/vocabulary/gguf_tokens.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <unordered_map>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/json/json.hpp"
#include "store/gguf/gguf_metadata.hpp"
#include "store/gguf/gguf_names.hpp"
#include "surgery/vocabulary/config_ids.hpp"
#include "surgery/vocabulary/trim_rules.hpp"
#include "text/unicode/space_marks.hpp"

namespace masque::surgery {

namespace {

constexpr const char* kModel = "tokenizer.ggml.model";

bool is_bracketed(std::string_view text) { return text.starts_with("[") && text.ends_with("]"); }

struct RoleKey {
  std::string_view role;
  std::string_view key;
};

/// The spelling of the separator is the format's; newer files have it right.
constexpr std::array kRoleKeys{
    RoleKey{"mask_token", "tokenizer.ggml.mask_token_id"},
    RoleKey{"cls_token", "tokenizer.ggml.cls_token_id"},
    RoleKey{"sep_token", "tokenizer.ggml.seperator_token_id"},
    RoleKey{"sep_token", "tokenizer.ggml.separator_token_id"},
    RoleKey{"pad_token", "tokenizer.ggml.padding_token_id"},
    RoleKey{"unk_token", "tokenizer.ggml.unknown_token_id"},
    RoleKey{"bos_token", "tokenizer.ggml.bos_token_id"},
    RoleKey{"eos_token", "tokenizer.ggml.eos_token_id"},
};

template <class Number>
std::vector<Number> numbers_of(const store::Checkpoint& checkpoint, const char* key,
                               store::GgufType type) {
  const store::TypedValue* value = store::find_gguf_value(checkpoint, key);
  const auto elements = value == nullptr ? std::nullopt : store::gguf_elements(*value, type);
  std::vector<Number> numbers(elements ? elements->size() / sizeof(Number) : 0);
  if (!numbers.empty()) std::memcpy(numbers.data(), elements->data(), elements->size());
  return numbers;
}

template <class Number>
std::string_view bytes_of(const std::vector<Number>& numbers) {
  return {reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(Number)};
}

/// The vocabulary in a file.
struct Tokens {
  explicit Tokens(const store::Checkpoint& checkpoint)
      : types(
            numbers_of<std::int32_t>(checkpoint, store::kGgufTokenTypes, store::GgufType::kInt32)),
        scores(numbers_of<float>(checkpoint, store::kGgufScores, store::GgufType::kFloat32)) {
    if (const store::TypedValue* value = store::find_gguf_value(checkpoint, store::kGgufTokens))
      texts = store::gguf_texts(*value).value_or(texts);
    const store::TypedValue* name = store::find_gguf_value(checkpoint, kModel);
    if (name != nullptr && name->type == "STRING") model = name->text;
  }

  GgufToken type(std::uint64_t id) const {
    return id < types.size() ? static_cast<GgufToken>(types[id]) : GgufToken::kNormal;
  }
  std::string plain(std::uint64_t id) const { return plain_gguf_token(model, texts[id], type(id)); }

  std::string model;
  std::vector<std::string> texts;
  std::vector<std::int32_t> types;
  std::vector<float> scores;
};

/// Whether a text is what the converter calls a row without a token: "[PADn]".
bool is_padding(std::string_view text) {
  if (text.starts_with(text::kSpaceMark)) text.remove_prefix(text::kSpaceMark.size());
  constexpr std::string_view kOpen = "[PAD";
  return text.starts_with(kOpen) && text.ends_with("]") &&
         parse_unsigned(text.substr(kOpen.size(), text.size() - kOpen.size() - 1)).has_value();
}

/// A token as a file has it.
struct Piece {
  std::string text;
  GgufToken type;
};

/// The token of a new id. "[PADn]" goes with the id, other texts of unused rows stay.
Piece piece_of(const Tokens& before, const VocabularyChange& change, std::uint64_t id) {
  const std::uint64_t old = change.from[id];
  const std::string& plain = change.tokens[id];
  const std::string text = old < before.texts.size() ? before.texts[old] : std::string();
  const bool named = old < before.texts.size() && before.type(old) != GgufToken::kUnused;
  if (named && before.plain(old) == plain) return {text, before.type(old)};
  if (plain.empty()) {
    const std::string padding = fmt::format("[PAD{}]", id);
    constexpr GgufToken kType = GgufToken::kUnused;
    if (named || text.empty()) return {gguf_token(before.model, padding, kType), kType};
    return {is_padding(text) ? text.substr(0, text.find('[')) + padding : text, kType};
  }
  const GgufToken fresh = before.model == "bert" ? GgufToken::kNormal : GgufToken::kUserDefined;
  const GgufToken type = named ? before.type(old) : fresh;
  if (named && is_bracketed(text) && is_bracketed(plain)) return {plain, type};
  return {gguf_token(before.model, plain, type), type};
}

/// The tokens of after, of which each array gets an element for every row.
class NewTokens {
 public:
  NewTokens(const Tokens& before, const VocabularyChange& change) {
    const float least = before.scores.empty() ? 0 : *std::ranges::min_element(before.scores);
    for (std::uint64_t id = 0; id < change.from.size(); ++id) {
      const std::uint64_t old = change.from[id];
      Piece piece = piece_of(before, change, id);
      texts_.push_back(std::move(piece.text));
      types_.push_back(static_cast<std::int32_t>(piece.type));
      scores_.push_back(old < before.scores.size() ? before.scores[old] : least);
    }
  }

  void write(CheckpointEdit& edit, const Tokens& before) const {
    edit.set_typed(store::make_gguf_texts(store::kGgufTokens, texts_));
    if (!before.types.empty())
      edit.set_typed(store::make_gguf_array(store::kGgufTokenTypes, store::GgufType::kInt32,
                                            bytes_of(types_)));
    if (!before.scores.empty())
      edit.set_typed(
          store::make_gguf_array(store::kGgufScores, store::GgufType::kFloat32, bytes_of(scores_)));
  }

  const std::vector<std::string>& texts() const { return texts_; }

 private:
  std::vector<std::string> texts_;
  std::vector<std::int32_t> types_;
  std::vector<float> scores_;
};

/// Merges name their tokens by text: those of a removed token go, with a note, and a renamed one is
/// refused.
void change_gguf_merges(CheckpointEdit& edit, const Tokens& before, const VocabularyChange& change,
                        std::uint64_t rows, std::vector<std::string>& notes) {
  const store::Checkpoint& checkpoint = edit.checkpoint();
  const store::TypedValue* value = store::find_gguf_value(checkpoint, store::kGgufMerges);
  const auto merges = value == nullptr ? std::nullopt : store::gguf_texts(*value);
  if (!merges) return;
  const IdMap ids(change, rows);
  std::unordered_map<std::string_view, bool> leaving;  // whether the token has another name now
  for (std::uint64_t id = 0; id < std::min<std::uint64_t>(before.texts.size(), rows); ++id) {
    const auto now = ids.after(id);
    if (!now || change.tokens[*now] != before.plain(id))
      leaving.emplace(before.texts[id], now && !change.tokens[*now].empty());
  }
  std::vector<std::string> wanted;
  for (const std::string& merge : *merges) {
    const auto parts = merge_parts(merge);
    bool keeps = true;
    const std::string made = parts ? merged(parts->first, parts->second, "") : "";
    for (const std::string_view token :
         {parts ? parts->first : std::string_view(), parts ? parts->second : std::string_view(),
          std::string_view(made)}) {
      const auto found = leaving.find(token);
      if (found == leaving.end()) continue;
      keeps = false;
      if (!found->second) continue;
      throw InputError(checkpoint.path(),
                       fmt::format("token '{}' would be renamed, but {} use it: use the Hugging "
                                   "Face folder, where each merge is checked",
                                   escape(token), store::kGgufMerges));
    }
    if (keeps) wanted.push_back(merge);
  }
  if (wanted.size() == merges->size()) return;
  notes.push_back(
      fmt::format("metadata '{}': {} of {} merges are left, those without removed "
                  "tokens",
                  store::kGgufMerges, wanted.size(), merges->size()));
  edit.set_typed(store::make_gguf_texts(store::kGgufMerges, wanted));
}

constexpr const char* kSuppressed = "tokenizer.ggml.suppress_tokens";

/// The list of ids `kSuppressed` with elements of `type`, renumbered; false if it is none.
template <class Number>
bool renumber_suppressed(CheckpointEdit& edit, const IdMap& ids, store::GgufType type,
                         std::vector<std::string>& notes) {
  const std::vector<Number> old = numbers_of<Number>(edit.checkpoint(), kSuppressed, type);
  if (old.empty()) return false;
  std::vector<Number> now;
  std::vector<Number> gone;
  for (const Number id : old) {
    const auto after = ids.after(static_cast<std::uint64_t>(id));  // below 0: beyond all rows
    if (after) {
      now.push_back(static_cast<Number>(*after));
    } else {
      gone.push_back(id);
    }
  }
  if (!gone.empty())
    notes.push_back(fmt::format("metadata '{}': ids of removed tokens are left out: {}",
                                kSuppressed, fmt::join(gone, ", ")));
  if (now != old) edit.set_typed(store::make_gguf_array(kSuppressed, type, bytes_of(now)));
  return true;
}

bool moves(const IdMap& ids, std::uint64_t rows) {
  for (std::uint64_t id = 0; id < rows; ++id)
    if (ids.after(id) != id) return true;
  return false;
}

/// Renumbers the list of ids, and notes metadata that does not follow: what has tokens.
std::vector<std::string> stale_values(CheckpointEdit& edit, const IdMap& ids, bool new_texts,
                                      bool new_ids) {
  std::vector<std::string> notes;
  const bool renumbered =
      !new_ids || renumber_suppressed<std::int32_t>(edit, ids, store::GgufType::kInt32, notes) ||
      renumber_suppressed<std::uint32_t>(edit, ids, store::GgufType::kUint32, notes);
  for (const auto& [key, stale] :
       {std::pair{"tokenizer.huggingface.json", new_texts}, std::pair{kSuppressed, !renumbered}}) {
    if (!stale || store::find_gguf_value(edit.checkpoint(), key) == nullptr) continue;
    notes.push_back(
        fmt::format("metadata '{}' stays unchanged and describes the old vocabulary", key));
  }
  return notes;
}

void change_size(CheckpointEdit& edit, const store::TypedValue* size, std::uint64_t number) {
  if (size == nullptr || store::gguf_integer(*size) == number) return;
  edit.set_typed(store::make_gguf_integer(*size, number, edit.checkpoint().path()));
}

}  // namespace

TokenNames TokenNames::of(const store::Checkpoint& checkpoint) {
  const Tokens tokens(checkpoint);
  if (tokens.texts.empty()) return load(checkpoint.folder());
  TokenNames names;
  names.source_ = store::kGgufTokens;
  for (std::uint64_t id = 0; id < tokens.texts.size(); ++id) {
    if (tokens.type(id) == GgufToken::kUnused) continue;
    names.set(tokens.plain(id), id, checkpoint.path());
    if (tokens.type(id) == GgufToken::kControl) names.special_.insert(tokens.plain(id));
  }
  for (const auto& [role, key] : kRoleKeys) {
    const store::TypedValue* value = store::find_gguf_value(checkpoint, key);
    const auto id = value == nullptr ? std::nullopt : store::gguf_integer(*value);
    if (id && names.assigned(*id)) names.roles_[std::string(role)] = names.token(*id);
  }
  names.guess_roles();
  return names;
}

std::vector<std::string> change_gguf_tokens(CheckpointEdit& edit, const VocabularyChange& change,
                                            std::uint64_t rows) {
  const store::Checkpoint& checkpoint = edit.checkpoint();
  change_size(edit, store::find_gguf_size(checkpoint, "vocab_size"), change.from.size());
  const Tokens before(checkpoint);
  if (before.texts.empty()) return {};
  std::vector<std::string> notes;
  change_gguf_merges(edit, before, change, rows, notes);
  const NewTokens now(before, change);
  now.write(edit, before);
  const IdMap ids(change, rows);
  for (const store::WeightsFile& file : checkpoint.files()) {
    for (const store::TypedValue& value : file.content.typed) {
      const auto id = store::gguf_integer(value);
      if (!id || !value.key.starts_with("tokenizer.ggml.") || !value.key.ends_with("_token_id"))
        continue;
      const auto after = ids.after(*id);
      if (!after) {
        throw InputError(checkpoint.path(),
                         fmt::format("metadata '{}' is {}, a row that would be removed",
                                     escape(value.key), *id));
      }
      change_size(edit, &value, *after);
    }
  }
  for (std::string& note : stale_values(edit, ids, now.texts() != before.texts, moves(ids, rows)))
    notes.push_back(std::move(note));
  return notes;
}

}  // namespace masque::surgery
