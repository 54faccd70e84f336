#include "surgery/vocabulary/config_ids.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/json.hpp"
#include "base/json_writer.hpp"
#include "surgery/vocabulary/id_map.hpp"

namespace masque::surgery {
namespace {

/// Models that count positions from the padding id on.
constexpr std::array<std::string_view, 9> kPaddingPositions{
    "roberta",   "xlm-roberta", "xlm-roberta-xl", "roberta-prelayernorm",
    "camembert", "longformer",  "mpnet",          "data2vec-text",
    "esm"};

/// The ids of one file.
class ConfigIds {
 public:
  ConfigIds(CheckpointEdit& edit, const IdMap& ids, std::uint64_t rows, std::string file)
      : edit_(edit), ids_(ids), rows_(rows), file_(std::move(file)) {}

  void renumber(std::vector<std::string>& notes) {
    const auto text = edit_.file_text(file_);
    if (!text) return;
    std::string changed = *text;
    const JsonValue root = parse_json_file(*text, file_);
    for (const JsonMember& member : root.members) {
      if (!member.name.ends_with("_token_id")) continue;
      const std::string value = renumbered(member, notes);
      if (!value.empty()) changed = set_json_member(changed, {member.name}, value);
    }
    if (changed != *text) edit_.set_file(file_, std::move(changed));
  }

 private:
  /// The new value of a member; empty if it stays.
  std::string renumbered(const JsonMember& member, std::vector<std::string>& notes) const {
    if (member.value.is(JsonKind::kNumber)) {
      const auto id = member.value.integer();
      if (!id) return "";
      const std::uint64_t now = after(member.name, *id, notes);
      return now == *id ? "" : fmt::format("{}", now);
    }
    std::vector<std::uint64_t> now;
    bool changed = false;
    for (const JsonValue& item : member.value.items) {
      const auto id = item.integer();
      if (!id) return "";
      now.push_back(after(member.name, *id, notes));
      changed |= now.back() != *id;
    }
    return changed ? json_array(now, JsonLayout::kSpaced) : "";
  }

  std::uint64_t after(const std::string& name, std::uint64_t id,
                      std::vector<std::string>& notes) const {
    if (id >= rows_) {
      notes.push_back(fmt::format("{}: {} is {}, which is not a row of the table: left unchanged",
                                  file_, escape(name), id));
    }
    const auto now = ids_.after(id);
    if (!now) {
      throw InputError(file_,
                       fmt::format("{} is {}, a row that would be removed", escape(name), id));
    }
    return *now;
  }

  CheckpointEdit& edit_;
  const IdMap& ids_;
  std::uint64_t rows_;
  std::string file_;
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
                                           const VocabularyChange& change, std::uint64_t rows) {
  std::vector<std::string> notes;
  if (!edit.checkpoint().is_folder()) return notes;
  const IdMap ids(change, rows);
  check_positions(edit, ids);
  const std::string file_of_config = store::config_name(edit.checkpoint().folder());
  for (const std::string& file : {file_of_config, std::string("generation_config.json")})
    ConfigIds(edit, ids, rows, file).renumber(notes);
  const auto text = edit.file_text(file_of_config);
  if (!text || change.from.size() == rows) return notes;
  const store::ModelConfig config = store::ModelConfig::parse(*text, file_of_config);
  const std::string size = fmt::format("{}", change.from.size());
  std::vector<std::string> names = {"vocab_size"};
  if (family != nullptr && !family->vocab_fields.empty()) names = family->vocab_fields;
  bool found = false;
  for (const std::string& name : names) {
    if (!config.has(name)) continue;
    edit.set_config(name, size);
    found = true;
  }
  if (!found) edit.set_config(names.front(), size);
  return notes;
}

}  // namespace masque::surgery
