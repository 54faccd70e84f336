// Options of how a model is opened and how its products are computed, which commands share.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "cli/command.hpp"
#include "kernel/precision.hpp"

namespace masque::commands {

/// --tokenizer and --family of a checkpoint folder.
void add_folder_options(cli::Command& command, std::optional<std::string>& tokenizer,
                        std::string& family);
/// --precision f32|bf16|f64, of a model that runs.
void add_precision(cli::Command& command, kernel::Precision& precision);
/// --precision f32|bf16, of training, which keeps weights in float.
void add_training_precision(cli::Command& command, kernel::Precision& precision);
/// --batch-tokens, of commands that run texts together.
void add_batch_tokens(cli::Command& command, std::int64_t& tokens);
/// --chunk-tokens of training.
void add_chunk_tokens(cli::Command& command, std::int64_t& tokens);

}  // namespace masque::commands
