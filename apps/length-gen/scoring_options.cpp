#include "scoring_options.hpp"

#include <fmt/format.h>

namespace masque::length_gen {

void add_eval_lengths(cli::Command& command, std::string& lengths, const std::string& help) {
  command.option("--eval-lengths", "LIST", lengths, help);
}

void add_windows(cli::Command& command, std::optional<std::string>& windows,
                 const std::string& what) {
  command.option("--window", "LIST", windows,
                 what + " with keys hidden that are this many positions away or more");
}

void add_eval_tokens(cli::Command& command, std::int64_t& tokens, const std::string& text) {
  command.option("--eval-tokens", "N", tokens, cli::AllowedRange{0, 1e12},
                 fmt::format("use only the first N tokens of {}; 0: all", text));
}

}  // namespace masque::length_gen
