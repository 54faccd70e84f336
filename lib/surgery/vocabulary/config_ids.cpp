#include "surgery/vocabulary/config_ids.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/file/file.hpp"
#include "base/json/json.hpp"
#include "base/string/split.hpp"
#include "base/string/text_splice.hpp"
#include "surgery/edit/vocab_size.hpp"
#include "surgery/rows/token_names.hpp"
#include "surgery/vocabulary/json_elements.hpp"

namespace masque::surgery {
namespace {

// Members of configurations that hold token ids, by name and by form.

/// How a member holds ids.
enum class IdForm {
  kId,         ///< 5 or [5, 6]: each must have a token ("eos_token_id")
  kList,       ///< [5, 6], in lists of any depth: those without a token go ("suppress_tokens")
  kSequences,  ///< [[5, 6], [7]]: sequences go whole ("bad_words_ids")
  kPairs,      ///< [[1, 5]]: a position and an id ("forced_decoder_ids")
  kBiases,     ///< [[[5], -10.0]] or {"(5,)": -10.0} ("sequence_bias")
  kByName,     ///< {"<|en|>": 5} ("lang_to_id")
  kById,       ///< {"5": -10.0} ("logit_bias")
  kOther,      ///< of another vocabulary ("codec_eos_token_id")
};

/// What renumber_ids() did not carry over.
struct LostIds {
  std::vector<std::uint64_t> gone;    ///< whose tokens were removed: their entries are left out
  std::vector<std::uint64_t> beyond;  ///< that are no row of the table: unchanged
};

struct NamedForm {
  std::string_view name;
  IdForm form;
};

constexpr std::array kNamedForms{
    NamedForm{"suppress_tokens", IdForm::kList},
    NamedForm{"begin_suppress_tokens", IdForm::kList},
    NamedForm{"trainable_token_indices", IdForm::kList},
    NamedForm{"bad_words_ids", IdForm::kSequences},
    NamedForm{"force_words_ids", IdForm::kSequences},
    NamedForm{"forced_decoder_ids", IdForm::kPairs},
    NamedForm{"sequence_bias", IdForm::kBiases},
    NamedForm{"lang_to_id", IdForm::kByName},
    NamedForm{"task_to_id", IdForm::kByName},
    NamedForm{"lang_code_to_id", IdForm::kByName},
    NamedForm{"text_decoder_lang_to_code_id", IdForm::kByName},
    NamedForm{"logit_bias", IdForm::kById},
    // XLM's names, and those of remote code.
    NamedForm{"pad_index", IdForm::kId},
    NamedForm{"bos_index", IdForm::kId},
    NamedForm{"eos_index", IdForm::kId},
    NamedForm{"unk_index", IdForm::kId},
    NamedForm{"mask_index", IdForm::kId},
    NamedForm{"pad_id", IdForm::kId},
    NamedForm{"bos_id", IdForm::kId},
    NamedForm{"eos_id", IdForm::kId},
    NamedForm{"unk_id", IdForm::kId},
    NamedForm{"cls_id", IdForm::kId},
    NamedForm{"sep_id", IdForm::kId},
    NamedForm{"mask_id", IdForm::kId},
    NamedForm{"eod_id", IdForm::kId},
    NamedForm{"eot_id", IdForm::kId},
    NamedForm{"blank_id", IdForm::kId},
    NamedForm{"im_start_id", IdForm::kId},
    NamedForm{"im_end_id", IdForm::kId},
    NamedForm{"think_start_id", IdForm::kId},
    NamedForm{"think_end_id", IdForm::kId},
};

/// Single ids, and lists of those that must all be there.
constexpr std::array<std::string_view, 4> kIdEndings{"_token_id", "_token_ids", "_token_index",
                                                     "_tokens_ids"};
/// Models of speech have codes of sound besides the tokens.
constexpr std::array<std::string_view, 5> kOtherVocabularies{"t2u_", "codec_", "codebook_",
                                                             "vocoder_", "tts_codec_"};

/// Words in the names of members that hold one token id.
constexpr std::array<std::string_view, 17> kTokenWords{
    "pad",   "bos",   "eos", "unk", "cls",   "sep",   "mask",  "eod",  "eot",
    "blank", "start", "end", "sot", "token", "think", "image", "audio"};
/// Numbers of tokens that are no vocab_size of the model that changes, or not that alone.
constexpr std::array<std::string_view, 3> kFurtherSizes{"decoder_vocab_size", "padded_vocab_size",
                                                        "n_vocab"};

bool ends_with_one(std::string_view name, std::span<const std::string_view> endings) {
  return std::ranges::any_of(endings, [&](std::string_view end) { return name.ends_with(end); });
}

bool holds_numbers(const JsonValue& value) {
  if (value.is(JsonKind::kNumber)) return value.integer().has_value();
  return value.is(JsonKind::kArray) && !value.items.empty() &&
         std::ranges::all_of(value.items, holds_numbers);
}

/// One member on its way.
class Renumbering {
 public:
  Renumbering(const std::string& text, const IdMap& ids, std::uint64_t rows, TextSplice& splice)
      : text_(text), ids_(ids), rows_(rows), splice_(splice) {}

  LostIds run(const JsonValue& value, IdForm form) {
    switch (form) {
      case IdForm::kList:
        elements(value, [&](const JsonValue& item) { return nested(item); });
        break;
      case IdForm::kSequences:
        elements(value, [&](const JsonValue& item) { return sequences(item); });
        break;
      case IdForm::kPairs:
        elements(value, [&](const JsonValue& item) {
          return item.items.size() == 2 ? part(item, 1) : text_of(text_, item);
        });
        break;
      case IdForm::kBiases:
        if (value.is(JsonKind::kObject)) {
          keys(value);
        } else {
          elements(value, [&](const JsonValue& item) {
            return item.items.size() == 2 ? part(item, 0) : text_of(text_, item);
          });
        }
        break;
      case IdForm::kByName: members(value); break;
      case IdForm::kById: keys(value); break;
      case IdForm::kId:
      case IdForm::kOther: break;
    }
    return std::move(lost_);
  }

 private:
  using Text = std::optional<std::string>;  ///< nothing: the entry is gone

  /// The new spelling of an id; other values stay.
  Text number(const JsonValue& value) {
    const auto id = value.integer();
    return id ? spelled(*id, text_of(text_, value)) : text_of(text_, value);
  }

  Text spelled(std::uint64_t id, std::string same) {
    if (id >= rows_) lost_.beyond.push_back(id);
    const auto now = ids_.after(id);
    if (now == id) return same;
    if (now) return fmt::format("{}", *now);
    lost_.gone.push_back(id);
    return std::nullopt;
  }

  /// `value`, a list, with `edits` of its items; nothing if an item is gone.
  template <class Edit>
  Text list(const JsonValue& value, Edit edit) {
    TextSplice inner;
    bool whole = true;
    for (const JsonValue& item : value.items) {
      const Text now = edit(item);
      whole = whole && now.has_value();
      if (now && *now != text_of(text_, item)) inner.replace(item.begin, item.end, *now);
    }
    if (!whole) return std::nullopt;
    return inner.empty() ? text_of(text_, value) : inner.apply(text_, value.begin, value.end);
  }

  /// A number, or a sequence of which all must stay.
  Text sequence(const JsonValue& value) {
    if (!value.is(JsonKind::kArray)) return number(value);
    return list(value, [&](const JsonValue& item) { return sequence(item); });
  }

  /// [5, 6], or of force_words_ids [[5], [6, 7]]: alternatives, of which one goes without others.
  Text sequences(const JsonValue& value) {
    const bool alternatives =
        value.is(JsonKind::kArray) && !value.items.empty() && value.items[0].is(JsonKind::kArray);
    if (!alternatives) return sequence(value);
    return kept(value, [&](const JsonValue& item) { return sequence(item); });
  }

  /// An id, or a list without those that are gone.
  Text nested(const JsonValue& value) {
    if (!value.is(JsonKind::kArray)) return number(value);
    return kept(value, [&](const JsonValue& item) { return nested(item); });
  }

  /// The pair `value` with its item `at` as a sequence.
  Text part(const JsonValue& value, std::size_t at) {
    return list(value, [&](const JsonValue& item) {
      return &item == &value.items[at] ? sequence(item) : Text(text_of(text_, item));
    });
  }

  /// `value` with what `edit` makes of its items; nothing if none of several is left.
  template <class Edit>
  Text kept(const JsonValue& value, Edit edit) {
    std::vector<std::string> wanted;
    for (const JsonValue& item : value.items)
      if (Text now = edit(item)) wanted.push_back(*std::move(now));
    if (wanted.empty() && !value.items.empty()) return std::nullopt;
    TextSplice inner;
    set_elements(text_, value, wanted, inner);
    return inner.empty() ? text_of(text_, value) : inner.apply(text_, value.begin, value.end);
  }

  template <class Edit>
  void elements(const JsonValue& value, Edit edit) {
    if (value.is(JsonKind::kObject)) {  // trainable_token_indices of several tables
      for (const JsonMember& member : value.members) elements(member.value, edit);
      return;
    }
    if (value.is(JsonKind::kArray)) replace(value, kept(value, edit));
  }

  void replace(const JsonValue& value, const Text& now) {
    const std::string text = now.value_or("null");
    if (text != text_of(text_, value)) splice_.replace(value.begin, value.end, text);
  }

  /// {"(5, 6)": -10.0}: tuples of Python as keys; {"5": -10.0}: ids.
  void keys(const JsonValue& value) {
    std::vector<std::string> wanted;
    for (const JsonMember& member : value.members) {
      const std::string_view name = member.name;
      std::vector<std::uint64_t> now;
      const bool single = parse_unsigned(name).has_value();
      bool known = single || (name.size() > 2 && name.starts_with('(') && name.ends_with(')'));
      bool gone = false;
      if (known) {
        for (std::string_view item : split(single ? name : name.substr(1, name.size() - 2), ',')) {
          while (item.starts_with(' ')) item.remove_prefix(1);
          if (item.empty()) continue;  // the end of "(5,)"
          const auto id = parse_unsigned(item);
          known = known && id.has_value();
          if (!id) break;
          const Text next = spelled(*id, std::string(item));
          gone = gone || !next;
          if (next) now.push_back(*parse_unsigned(*next));
        }
      }
      if (known && gone) continue;
      const std::string key =
          single  ? fmt::format("{}", now.front())
          : known ? fmt::format("({}{})", fmt::join(now, ", "), now.size() == 1 ? "," : "")
                  : member.name;
      wanted.push_back(member_text(text_, member, key, text_of(text_, member.value)));
    }
    set_members(value, wanted);
  }

  void members(const JsonValue& value) {
    std::vector<std::string> wanted;
    for (const JsonMember& member : value.members)
      if (const Text now = sequence(member.value))
        wanted.push_back(member_text(text_, member, member.name, *now));
    set_members(value, wanted);
  }

  void set_members(const JsonValue& value, const std::vector<std::string>& wanted) {
    if (!value.is(JsonKind::kObject)) return;
    if (wanted.empty() && !value.members.empty()) return replace(value, std::nullopt);
    set_elements(text_, value, wanted, splice_);
  }

  const std::string& text_;
  const IdMap& ids_;
  std::uint64_t rows_;
  TextSplice& splice_;
  LostIds lost_;
};

/// The form of the member `name` of a configuration, as transformers and PEFT name them; nothing if
/// no member of this name holds token ids.
std::optional<IdForm> id_form_of(std::string_view name) {
  const auto named = std::ranges::find(kNamedForms, name, &NamedForm::name);
  if (named != kNamedForms.end()) return named->form;
  if (!ends_with_one(name, kIdEndings)) return std::nullopt;
  const bool other = std::ranges::any_of(
      kOtherVocabularies, [&](std::string_view start) { return name.starts_with(start); });
  return other ? IdForm::kOther : IdForm::kId;
}

/// Whether `value`, the member `name`, may hold token ids although no table knows it: a list of
/// whole numbers, of any depth, an object of numbers, or a whole number, with a name like those of
/// ids or tokens.
bool may_hold_ids(std::string_view name, const JsonValue& value) {
  if (value.integer()) {
    const auto is_word = [](std::string_view part) {
      return std::ranges::find(kTokenWords, part) != kTokenWords.end();
    };
    return name.ends_with("_id") && !name.ends_with("_type_id") &&
           std::ranges::any_of(split(name, '_'), is_word);
  }
  const bool named = name.ends_with("_ids") || name.find("token") != std::string_view::npos;
  if (value.is(JsonKind::kObject)) {
    const auto is_number = [](const JsonMember& member) {
      return member.value.is(JsonKind::kNumber);
    };
    return (named || name.find("vocab") != std::string_view::npos) && !value.members.empty() &&
           std::ranges::all_of(value.members, is_number);
  }
  return named && value.is(JsonKind::kArray) && holds_numbers(value);
}

/// The name in kTokenRoles, with "_id", of what `member` names another way ("pad_index"); `member`
/// itself if it does not.
std::string usual_name(std::string_view member) {
  for (const std::string_view role : kTokenRoles) {
    const std::string_view stem = role.substr(0, role.find('_'));
    if (member.starts_with(stem) &&
        (member.substr(stem.size()) == "_id" || member.substr(stem.size()) == "_index"))
      return fmt::format("{}_id", role);
  }
  return std::string(member);
}

/// Whether `inner`, the value of the member `name` of a config with the vocabulary size `outer`,
/// describes the same vocabulary; one with a size of its own may not.
bool is_of_vocabulary_of(std::string_view name, const JsonValue& inner,
                         std::optional<std::uint64_t> outer, std::uint64_t rows) {
  const JsonValue* size = inner.find("vocab_size");
  const auto own = size == nullptr ? std::nullopt : size->integer();
  return !own || name == "text_config" || own == outer || own == rows;
}

/// Renumbers `value` of `text`, a member of the `form` (not kId, not kOther), by `ids` of a
/// vocabulary of `rows` rows, with edits in `splice`. An entry with an id whose token is gone is
/// left out; a list that becomes empty by this becomes null, which transformers reads as none.
/// Anything that is not of the form stays unchanged. Returns the ids that were not carried over.
LostIds renumber_ids(const std::string& text, const JsonValue& value, IdForm form, const IdMap& ids,
                     std::uint64_t rows, TextSplice& splice) {
  return Renumbering(text, ids, rows, splice).run(value, form);
}

// The files with ids.

/// Models that count positions from the padding id on.
constexpr std::array<std::string_view, 9> kPaddingPositions{
    "roberta",   "xlm-roberta", "xlm-roberta-xl", "roberta-prelayernorm",
    "camembert", "longformer",  "mpnet",          "data2vec-text",
    "esm"};

/// Files with ids, besides the config.
constexpr std::array<const char*, 4> kFilesWithIds{
    "generation_config.json", "processor_config.json", "preprocessor_config.json",
    "adapter_config.json"};
constexpr std::uint64_t kMostConfigBytes = 64 << 20;
constexpr const char* kVocabSize = "vocab_size";
/// The part of a model for several kinds of input that has its vocabulary.
constexpr const char* kTextConfig = "text_config";
/// Of what a note lists.
constexpr std::size_t kListed = 8;

std::string listed_ids(std::vector<std::uint64_t> ids) {
  std::ranges::sort(ids);
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  const std::size_t count = ids.size();
  ids.resize(std::min(count, kListed));
  return fmt::format("{}{}", fmt::join(ids, ", "),
                     count > kListed ? fmt::format(" and {} more", count - kListed) : "");
}

/// What all files share.
struct ConfigChange {
  const IdMap& ids;
  std::uint64_t rows;  ///< before
  std::uint64_t size;  ///< rows afterwards
  const RoleIds& roles;
  std::vector<std::string> fields;  ///< of the family, with the number of tokens
  std::vector<std::string>& notes;
};

/// The ids of one file.
class ConfigIds {
 public:
  ConfigIds(CheckpointEdit& edit, const ConfigChange& change, std::string file)
      : edit_(edit), change_(change), file_(std::move(file)) {}

  void renumber() {
    const auto text = edit_.file_text(file_);
    if (!text) return;
    text_ = *text;
    const JsonValue root = parse_json_file(text_, file_);
    const JsonValue* size = root.find(kVocabSize);
    old_size_ = size == nullptr ? std::nullopt : size->integer();
    object(root, "");
    if (!splice_.empty()) edit_.set_file(file_, splice_.apply(text_));
  }

 private:
  void object(const JsonValue& value, const std::string& path) {
    for (const JsonMember& member : value.members) {
      const std::string name = path + member.name;
      if (const auto form = id_form_of(member.name)) {
        ids(member, name, *form);
        continue;
      }
      if (!change_.ids.is_identity() && may_hold_ids(member.name, member.value)) {
        note(fmt::format("'{}' may hold token ids: left unchanged", escape(name)));
      } else if (member.value.is(JsonKind::kObject)) {
        nested(member, name);
      } else {
        further_size(member, name);
      }
    }
  }

  /// A number of tokens that a config has besides vocab_size.
  void further_size(const JsonMember& member, const std::string& name) {
    const auto size = member.value.integer();
    if (!size || change_.size == change_.rows || member.name == "type_vocab_size" ||
        std::ranges::find(change_.fields, member.name) != change_.fields.end())
      return;
    const bool known = std::ranges::find(kFurtherSizes, member.name) != kFurtherSizes.end();
    const bool same = size == change_.rows && member.name.find("vocab") != std::string::npos &&
                      member.name != kVocabSize;
    if (known || same)
      note(fmt::format("'{}' may be the number of tokens: it stays {}", escape(name), *size));
  }

  void nested(const JsonMember& member, const std::string& name) {
    if (!is_of_vocabulary_of(member.name, member.value, old_size_, change_.rows)) {
      const auto has_ids = [](const JsonMember& inner) {
        return id_form_of(inner.name) && !inner.value.is(JsonKind::kNull);
      };
      if (std::ranges::any_of(member.value.members, has_ids))
        note(fmt::format("'{}' has a vocabulary of its own: its ids stay unchanged", escape(name)));
      return;
    }
    const JsonValue* size = member.value.find(kVocabSize);
    if (size != nullptr && size->integer() && size->integer() != change_.size)
      splice_.replace(size->begin, size->end, fmt::format("{}", change_.size));
    object(member.value, name + ".");
  }

  void ids(const JsonMember& member, const std::string& name, IdForm form) {
    if (form == IdForm::kOther) return;
    if (form == IdForm::kId) return required(member, name);
    const LostIds lost =
        renumber_ids(text_, member.value, form, change_.ids, change_.rows, splice_);
    if (!lost.gone.empty())
      note(fmt::format("{}: ids of removed tokens are left out: {}", escape(name),
                       listed_ids(lost.gone)));
    if (!lost.beyond.empty())
      note(fmt::format("{}: not rows of the table, left unchanged: {}", escape(name),
                       listed_ids(lost.beyond)));
  }

  /// One id, or a list of them.
  void required(const JsonMember& member, const std::string& name) {
    if (member.value.is(JsonKind::kNumber)) {
      const auto id = member.value.integer();
      if (!id) return note_spelling(member, name);
      const auto now = role_or(member.name, name, *id);
      if (now != *id)
        splice_.replace(member.value.begin, member.value.end,
                        now ? fmt::format("{}", *now) : std::string("null"));
      return;
    }
    const auto is_id = [](const JsonValue& item) { return item.integer().has_value(); };
    if (member.value.items.empty() || !std::ranges::all_of(member.value.items, is_id))
      return note_spelling(member, name);
    std::vector<std::string> now;
    for (const JsonValue& item : member.value.items) {
      const std::uint64_t id = *item.integer();
      const auto next = change_.ids.after(id) ? after(name, id) : role_or(member.name, name, id);
      if (!next) continue;
      std::string text = fmt::format("{}", *next);
      // Several ids of one role become one.
      if (next != id && std::ranges::find(now, text) != now.end()) continue;
      now.push_back(std::move(text));
    }
    if (now.empty()) {
      splice_.replace(member.value.begin, member.value.end, "null");
    } else {
      set_elements(text_, member.value, now, splice_);
    }
  }

  /// What should be an id, but is spelled in another way: "6" or 6.0. Negative ids name no token.
  void note_spelling(const JsonMember& member, const std::string& name) {
    const JsonValue& value = member.value;
    const auto number = value.number();
    const bool none = value.is(JsonKind::kNull) || value.is(JsonKind::kBool) ||
                      (value.is(JsonKind::kArray) && value.items.empty()) ||
                      (number && *number < 0);
    if (none || change_.ids.is_identity()) return;
    note(fmt::format("{} is {}, expected an id: left unchanged", escape(name),
                     escape(text_of(text_, value))));
  }

  /// The new id of a member, of its role if the new tokenizer knows it; nothing if that has no
  /// token of the role.
  std::optional<std::uint64_t> role_or(const std::string& member, const std::string& name,
                                       std::uint64_t id) {
    const auto role = change_.roles ? change_.roles(usual_name(member)) : std::nullopt;
    if (role) return role;
    if (!change_.roles || change_.ids.after(id) || !is_role(member)) return after(name, id);
    note(fmt::format("{} becomes null: the new tokenizer has no such token", escape(name)));
    return std::nullopt;
  }

  static bool is_role(std::string_view name) {
    const std::string member = usual_name(name);
    return std::ranges::any_of(kTokenRoles, [&](std::string_view role) {
      return member.starts_with(role) && member.substr(role.size()) == "_id";
    });
  }

  std::uint64_t after(const std::string& name, std::uint64_t id) {
    if (id >= change_.rows) {
      note(fmt::format("{} is {}, which is not a row of the table: left unchanged", escape(name),
                       id));
    }
    const auto now = change_.ids.after(id);
    if (!now) {
      throw InputError(file_,
                       fmt::format("{} is {}, a row that would be removed", escape(name), id));
    }
    return *now;
  }

  void note(const std::string& text) {
    change_.notes.push_back(fmt::format("{}: {}", file_, text));
  }

  CheckpointEdit& edit_;
  const ConfigChange& change_;
  std::string file_;
  std::string text_;
  std::optional<std::uint64_t> old_size_;
  TextSplice splice_;
};

void check_positions(const CheckpointEdit& edit, const IdMap& ids) {
  const auto config = store::ModelConfig::find(edit.checkpoint().folder());
  if (!config) return;
  const std::string type = config->model_type();
  if (std::ranges::find(kPaddingPositions, type) == kPaddingPositions.end()) return;
  const std::uint64_t pad = config->size("pad_token_id").value_or(1);
  if (ids.after(pad) == pad) return;
  throw InputError(edit.checkpoint().path(),
                   fmt::format("row {} belongs to the padding token, from which {} counts "
                               "positions: it must keep its id",
                               pad, escape(type)));
}

}  // namespace

std::vector<std::string> change_config_ids(CheckpointEdit& edit, const model::FamilyNames* family,
                                           const VocabularyChange& change, std::uint64_t rows,
                                           const RoleIds& roles) {
  std::vector<std::string> notes;
  if (!edit.checkpoint().is_folder()) return notes;
  const IdMap ids(change, rows);
  check_positions(edit, ids);
  const std::uint64_t size = change.from.size();
  const std::string config = store::config_name(edit.checkpoint().folder());
  const ConfigChange job{ids, rows, size, roles, vocab_size_fields(family), notes};
  ConfigIds(edit, job, config).renumber();
  for (const char* file : kFilesWithIds) ConfigIds(edit, job, file).renumber();
  // With other roles the tokenizer is another one, whose files have its own ids.
  if (!roles) ConfigIds(edit, job, "tokenizer_config.json").renumber();
  if (rows == size) {
    match_vocab_size(edit, family, size, &notes);
    return notes;
  }
  if (match_vocab_size(edit, family, size, nullptr)) return notes;
  const auto text = edit.file_text(config);
  const JsonValue root = parse_json_file(*text, config);
  const JsonValue* inner = root.find(kTextConfig);
  if (inner == nullptr || inner->find(kVocabSize) == nullptr)
    edit.set_config(vocab_size_fields(family).front(), fmt::format("{}", size));
  return notes;
}

namespace {

/// Adds the ids of `value`, an object of a configuration, that each must have a token.
void add_named_ids(const JsonValue& value, std::optional<std::uint64_t> size, std::uint64_t rows,
                   std::vector<std::uint64_t>& out) {
  for (const JsonMember& member : value.members) {
    if (id_form_of(member.name) == IdForm::kId) {
      if (const auto id = member.value.integer()) out.push_back(*id);
      for (const JsonValue& item : member.value.items)
        if (const auto id = item.integer()) out.push_back(*id);
    } else if (member.value.is(JsonKind::kObject) &&
               is_of_vocabulary_of(member.name, member.value, size, rows)) {
      add_named_ids(member.value, size, rows, out);
    }
  }
}

}  // namespace

std::vector<std::uint64_t> ids_named_by_configs(const store::Checkpoint& checkpoint,
                                                std::uint64_t rows) {
  std::vector<std::uint64_t> out;
  if (!checkpoint.is_folder()) return out;
  const std::string& folder = checkpoint.folder();
  for (const std::string& name : {store::config_name(folder), std::string(kFilesWithIds.front())}) {
    const std::string path = join(folder, name);
    if (!exists(path)) continue;
    const JsonValue root = parse_json_file(read_text(path, kMostConfigBytes), name);
    const JsonValue* size = root.find(kVocabSize);
    add_named_ids(root, size == nullptr ? std::nullopt : size->integer(), rows, out);
  }
  std::erase_if(out, [&](std::uint64_t id) { return id >= rows; });
  return out;
}

IdMap::IdMap(const VocabularyChange& change, std::uint64_t rows)
    : after_(rows, VocabularyChange::kNew) {
  bool only_old = true;
  for (std::uint64_t id = 0; id < change.from.size(); ++id) {
    const std::uint64_t before = change.from[id];
    if (before == VocabularyChange::kNew) {
      only_old = false;
      continue;
    }
    MASQUE_CHECK(before < rows);
    if (after_[before] == VocabularyChange::kNew) {
      after_[before] = id;
    }
  }
  for (std::uint64_t id = 0; id < rows; ++id) identity_ = identity_ && after_[id] == id;
  permutation_ = only_old && change.from.size() == rows &&
                 std::ranges::find(after_, VocabularyChange::kNew) == after_.end();
}

std::optional<std::uint64_t> IdMap::after(std::uint64_t before) const {
  if (before >= after_.size()) return before;
  if (after_[before] == VocabularyChange::kNew) return std::nullopt;
  return after_[before];
}

}  // namespace masque::surgery
