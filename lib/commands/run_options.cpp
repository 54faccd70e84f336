#include "commands/run_options.hpp"

namespace masque::commands {

using kernel::Precision;

void add_folder_options(cli::Command& command, std::optional<std::string>& tokenizer,
                        std::string& family) {
  command.option("--tokenizer", "PATH", tokenizer, "a tokenizer as tok takes it [the folder's]");
  command.option("--family", "NAME", family, "read the folder as this model_type");
}

void add_precision(cli::Command& command, Precision& precision) {
  command.choice("--precision", precision, kernel::precision_names(),
                 "float; operands of products rounded to bfloat16; double");
}

void add_training_precision(cli::Command& command, Precision& precision) {
  command.choice("--precision", precision, kernel::precision_names().first(2),
                 "float; or products of operands rounded to bfloat16, with weights in float");
}

void add_batch_tokens(cli::Command& command, std::int64_t& tokens) {
  command.option("--batch-tokens", "N", tokens, cli::AllowedRange{1, 1e9},
                 "tokens that run together; bounds the memory, changes no result");
}

void add_chunk_tokens(cli::Command& command, std::int64_t& tokens) {
  command.option("--chunk-tokens", "N", tokens, cli::AllowedRange{1, 1e9},
                 "tokens that run together: memory; other numbers round otherwise");
}

}  // namespace masque::commands
