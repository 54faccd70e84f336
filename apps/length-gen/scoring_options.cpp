#include "scoring_options.hpp"

#include <fmt/format.h>

#include "base/string/split.hpp"
#include "exchange/read_masks.hpp"
#include "length/arms.hpp"

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

std::string masks_with_files_read(const std::string& list) {
  std::string out;
  for (const std::string_view part : split(list, ';')) {
    const std::string mask(trim(part));
    if (!out.empty()) out += "; ";
    out += mask == length::kOwn ? mask : exchange::with_files_read(mask);
  }
  return out;
}

}  // namespace masque::length_gen
