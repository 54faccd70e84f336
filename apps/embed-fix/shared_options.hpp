// Options and lines of reports that several commands have with the same words.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

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

}  // namespace masque::embed_fix
