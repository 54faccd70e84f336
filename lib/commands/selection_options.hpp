// Options that say which tokens are selected.
#pragma once

#include <string>

#include "cli/command.hpp"
#include "records/selection.hpp"

namespace masque::commands {

/// What the options say.
struct SelectionChoice {
  std::string rate = "0.15";            ///< a share, or LOW:HIGH
  records::SelectionOptions selection;  ///< its rate and seed are not read
};

/// Declares --rate, --unit, --choice, --span-p and --span-longest of `command`, with `options` as
/// their targets.
void add_selection(cli::Command& command, SelectionChoice& options);

/// `options` with the rate parsed, and `seed`. Throws UsageError for a rate that is not one or two
/// numbers from 0.
records::SelectionOptions selection_of(const SelectionChoice& options, std::uint64_t seed);

/// Numbers of `text` between colons: "0.8:0.1:0.1"; one colon at the end is ignored. Throws
/// UsageError, naming the field `name`, unless there are `least` to `most` and all are from 0.
std::vector<double> parse_shares(std::string_view name, const std::string& text, std::size_t least,
                                 std::size_t most);

}  // namespace masque::commands
