// Options of how a model is opened and how its products are computed, which commands share.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "cli/command.hpp"
#include "kernel/number/precision.hpp"

namespace masque::commands {

/// Declares --tokenizer and --family of a `command` that opens a checkpoint folder, with the
/// targets `tokenizer` and `family`; without them (nothing, empty) the folder's.
void add_folder_options(cli::Command& command, std::optional<std::string>& tokenizer,
                        std::string& family);
/// Declares --precision f32|bf16|f64 of a `command` that runs a model; `precision` is its target.
void add_precision(cli::Command& command, kernel::Precision& precision);
/// Declares --precision f32|bf16 of a `command` that trains, which keeps weights in float;
/// `precision` is its target.
void add_training_precision(cli::Command& command, kernel::Precision& precision);
/// Declares --batch-tokens of a `command` that runs texts together: from 1 to 1e9 `tokens`.
void add_batch_tokens(cli::Command& command, std::int64_t& tokens);
/// Declares --chunk-tokens of a `command` that trains: from 1 to 1e9 `tokens`.
void add_chunk_tokens(cli::Command& command, std::int64_t& tokens);

}  // namespace masque::commands
