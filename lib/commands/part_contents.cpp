#include "commands/part_contents.hpp"

#include <fmt/format.h>

#include "base/digest/hash.hpp"
#include "base/json/json_writer.hpp"
#include "base/string/comma_list.hpp"
#include "commands/provenance.hpp"
#include "mask/expression.hpp"
#include "store/checkpoint.hpp"
#include "store/tensorflow/tf_plan.hpp"
#include "store/tensors_digest.hpp"

namespace masque::commands {

std::string part_members(std::string_view shard, const OpenedModel& opened,
                         const InputPart& input) {
  std::string out;
  JsonWriter json(out);
  json.member("shard", shard);
  if (input.left_out > 0) json.member(kLeftOut, input.left_out);
  json.member(kInputDigest, input.digest);
  const store::Checkpoint checkpoint = store::open_checkpoint(opened.folder);
  json.member(kWeightsDigest, store::tensors_digest(checkpoint));
  if (const auto config = store::find_config(checkpoint))
    json.member(kConfigDigest, xxh3_of(as_bytes(config->text())));
  if (!opened.options.masks.empty()) {
    // Cells of files stand in it.
    json.member(kMaskDigest, xxh3_of(as_bytes(mask::layers_text(opened.options.masks))));
  }
  if (opened.tokenizer) json.member(kTokenizerDigest, text::tokenizer_digest(*opened.tokenizer));
  return out;
}

cli::ExitCode tell_left_out(std::uint64_t lines, cli::Session& session) {
  if (lines == 0) return cli::ExitCode::kDone;
  session.error(fmt::format("{} skipped", counted(lines, "line")));
  return cli::ExitCode::kInput;
}

}  // namespace masque::commands
