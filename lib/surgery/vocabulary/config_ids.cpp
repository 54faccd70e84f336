#include "surgery/vocabulary/config_ids.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/json.hpp"
#include "base/text_splice.hpp"
#include "surgery/edit/vocab_size.hpp"
#include "surgery/rows/token_names.hpp"
#include "surgery/vocabulary/id_fields.hpp"
#include "surgery/vocabulary/id_map.hpp"
#include "surgery/vocabulary/json_elements.hpp"

namespace masque::surgery {
namespace {

/// Models that count positions from the padding id on.
constexpr std::array<std::string_view, 9> kPaddingPositions{
    "roberta",   "xlm-roberta", "xlm-roberta-xl", "roberta-prelayernorm",
    "camembert", "longformer",  "mpnet",          "data2vec-text",
    "esm"};

/// Files with ids, besides the config.
constexpr std::array<const char*, 4> kFilesWithIds{
    "generation_config.json", "processor_config.json", "preprocessor_config.json",
    "adapter_config.json"};
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
      } else if (member.value.is(JsonKind::kObject)) {
        nested(member, name);
      } else if (!change_.ids.is_identity() && may_hold_ids(member.name, member.value)) {
        note(fmt::format("'{}' may hold token ids: left unchanged", escape(name)));
      }
    }
  }

  /// Whether an object describes the vocabulary that changes; one with a size of its own may not.
  bool is_of_vocabulary(const JsonMember& member) const {
    const JsonValue* size = member.value.find(kVocabSize);
    const auto own = size == nullptr ? std::nullopt : size->integer();
    return !own || member.name == kTextConfig || own == old_size_ || own == change_.rows;
  }

  void nested(const JsonMember& member, const std::string& name) {
    if (!is_of_vocabulary(member)) {
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
      if (!id) return;
      const auto now = role_or(member.name, name, *id);
      if (now != *id)
        splice_.replace(member.value.begin, member.value.end,
                        now ? fmt::format("{}", *now) : std::string("null"));
      return;
    }
    const auto is_id = [](const JsonValue& item) { return item.integer().has_value(); };
    if (member.value.items.empty() || !std::ranges::all_of(member.value.items, is_id)) return;
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

  /// The new id of a member, of its role if the new tokenizer knows it; nothing if that has no
  /// token of the role.
  std::optional<std::uint64_t> role_or(const std::string& member, const std::string& name,
                                       std::uint64_t id) {
    const auto role = change_.roles ? change_.roles(member) : std::nullopt;
    if (role) return role;
    if (!change_.roles || change_.ids.after(id) || !is_role(member)) return after(name, id);
    note(fmt::format("{} becomes null: the new tokenizer has no such token", escape(name)));
    return std::nullopt;
  }

  static bool is_role(std::string_view member) {
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

std::vector<std::string> change_config_ids(CheckpointEdit& edit, const store::FamilyNames* family,
                                           const VocabularyChange& change, std::uint64_t rows,
                                           const RoleIds& roles) {
  std::vector<std::string> notes;
  if (!edit.checkpoint().is_folder()) return notes;
  const IdMap ids(change, rows);
  check_positions(edit, ids);
  const std::uint64_t size = change.from.size();
  const std::string config = store::config_name(edit.checkpoint().folder());
  const ConfigChange job{ids, rows, size, roles, notes};
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

}  // namespace masque::surgery
