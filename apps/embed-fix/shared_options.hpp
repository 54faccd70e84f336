// Options and lines of reports that several commands have with the same words.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "cli/command.hpp"
#include "cli/session.hpp"
#include "cli/table.hpp"
#include "surgery/edit/verify_checkpoint.hpp"

namespace masque::embed_fix {

/// Declares -o.
void add_output(cli::Command& command, std::optional<std::string>& out);

/// Declares --tensor; `table` says which one.
void add_tensor(cli::Command& command, std::optional<std::string>& tensor,
                const std::string& table = "the table");

/// Declares --verify.
void add_verify(cli::Command& command, bool& verify);

/// Adds what --verify has found.
void add_verified(cli::Report& report, const surgery::VerifyResult& found);

/// Declares --multiple; `what` goes up to it.
void add_multiple(cli::Command& command, std::uint64_t& multiple,
                  const std::string& what = "adds rows without a token");

/// Declares -j, --json, -q and -v, for commands that write and report.
void add_report_options(cli::Command& command, cli::CommonOptions& common);

// Whether a command writes an output or changes its input: the options of both.

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
