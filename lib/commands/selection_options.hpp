// Options that say which tokens are selected.
#pragma once

#include <string>

#include "cli/command.hpp"
#include "records/selection.hpp"

namespace masque::commands {

struct SelectionChoice {
  std::string rate = "0.15";
  records::SelectionOptions selection;
};

void add_selection(cli::Command& command, SelectionChoice& options);

/// The options with the rate parsed. Throws UsageError.
records::SelectionOptions selection_of(const SelectionChoice& options, std::uint64_t seed);

/// Numbers between colons: "0.8:0.1:0.1". Throws UsageError unless there are `least` to `most`.
std::vector<double> parse_shares(std::string_view name, const std::string& text, std::size_t least,
                                 std::size_t most);

}  // namespace masque::commands
