// Whether a command writes an output or changes its input: the options of both.
#pragma once

#include <optional>
#include <string>

#include "cli/command.hpp"

namespace masque::embed_fix {

struct InPlaceChoice {
  bool in_place = false;
  std::optional<double> wait_seconds;
};

/// Declares --wait; `when` begins the help.
void add_wait(cli::Command& command, std::optional<double>& seconds, const std::string& when = "");
/// Declares --in-place and --wait.
void add_in_place(cli::Command& command, InPlaceChoice& choice);

/// Throws UsageError unless there is either an output or --in-place (or `dry_run`), and for options
/// that belong to the other one.
void check_output(const std::optional<std::string>& out, bool force, const InPlaceChoice& choice,
                  bool dry_run);

}  // namespace masque::embed_fix
