// config.json and generation_config.json: ids of tokens with a role.
#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "surgery/vocabulary/files.hpp"

namespace masque {

namespace {

/// Families that count positions from the padding id on.
constexpr std::array<std::string_view, 9> kPaddingPositions{
    "roberta",   "xlm-roberta", "xlm-roberta-xl", "roberta-prelayernorm",
    "camembert", "longformer",  "mpnet",          "data2vec-text",
    "esm"};

}  // namespace

void change_config_ids(VocabularyJob& job, const std::string& name) {
  const auto file = read_json_text(job, name);
  if (!file) return;
  TextSplice splice;
  for (const JsonMember& member : file->root.members) {
    if (!member.name.ends_with("_token_id")) continue;
    const auto change = [&](const JsonValue& value) {
      if (value.integer()) change_id(job, value, file->path, splice);
    };
    change(member.value);
    for (const JsonValue& item : member.value.items) change(item);
  }
  const JsonValue* type = file->root.find("model_type");
  const JsonValue* padding = file->root.find("pad_token_id");
  const auto pad = padding == nullptr ? job.moves.before().role("pad_token") : padding->integer();
  if (type != nullptr && pad && job.moves.id_after(*pad) != pad &&
      std::ranges::find(kPaddingPositions, type->text) != kPaddingPositions.end()) {
    throw InputError(file->path,
                     fmt::format("the padding token would go from id {} to {}, but {} counts "
                                 "positions from it: it must keep its id",
                                 *pad, job.moves.id_after(*pad).value_or(0), escape(type->text)));
  }
  write_splice(job, *file, splice);
}

}  // namespace masque
