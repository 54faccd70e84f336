// What merge must know of a part of a run: the shard, and digests of all that the run has read. The
// same names may stand for other contents by the time of the next part.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "cli/session.hpp"
#include "commands/open_model.hpp"

namespace masque::commands {

/// Of the input of a part.
struct InputPart {
  std::string digest;          ///< XXH3 of the whole input, of which the part is one
  std::uint64_t left_out = 0;  ///< lines of the part that could not be processed
};

/// Returns what a line of a part says of it, as JSON has it, without braces: `shard`, the lines
/// that were left out of `input`, and digests of the input, and of weights, config, mask and
/// tokenizer of `opened`. Reads the weights once. Throws InputError, and Interrupted.
std::string part_members(std::string_view shard, const OpenedModel& opened, const InputPart& input);

/// Says on `session` that `lines` were left out of the parts, as a run on all of them does. Returns
/// kInput if there are any, else kDone.
cli::ExitCode tell_left_out(std::uint64_t lines, cli::Session& session);

}  // namespace masque::commands
