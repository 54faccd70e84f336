#include "commands/run_options.hpp"

namespace masque::commands {

using kernel::Precision;

void add_folder_options(cli::Command& command, std::optional<std::string>& tokenizer,
                        std::string& family) {
  command.option("--tokenizer", "PATH", tokenizer,
                 "tokenizer folder or file, as for tok [the folder's]");
  command.option("--family", "NAME", family,
                 "model_type of a folder whose config.json has none [that of config.json]");
}

void add_precision(cli::Command& command, Precision& precision) {
  command.choice("--precision", precision, kernel::precision_names(),
                 "f32: float; bf16: round operands of products to bfloat16; f64: double");
}

void add_training_precision(cli::Command& command, Precision& precision) {
  command.choice("--precision", precision, kernel::precision_names().first(2),
                 "f32: float; bf16: round operands of products to bfloat16, keep weights in float");
}

void add_batch_tokens(cli::Command& command, std::int64_t& tokens) {
  command.option("--batch-tokens", "N", tokens, cli::AllowedRange{1, 1e9},
                 "tokens per batch; bounds memory, does not change results");
}

void add_chunk_tokens(cli::Command& command, std::int64_t& tokens) {
  command.option("--chunk-tokens", "N", tokens, cli::AllowedRange{1, 1e9},
                 "tokens per chunk; affects memory and rounding");
}

}  // namespace masque::commands
