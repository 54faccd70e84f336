// What the checks print: a table on stdout, a verdict on stderr.
#pragma once

#include <vector>

#include "cli/run_tool.hpp"
#include "commands/open_model.hpp"
#include "probe/check/check_invariance.hpp"
#include "probe/check/check_leak.hpp"
#include "probe/check/check_sane.hpp"

namespace masque::attn_probe {

/// Prints a row per layer and one for the output. Returns kFound if something leaks.
cli::ExitCode print_leaks(const probe::LeakReport& report, const probe::LeakRequest& request,
                          const commands::OpenModelOptions& options, cli::Session& session);

/// Prints a row per way to run. Returns kFound if a row differs.
cli::ExitCode print_invariance(const probe::InvarianceReport& report,
                               const commands::OpenModelOptions& options, Index layers,
                               cli::Session& session);

/// Prints a row per check. Returns kFound if one found something; unused tensors do not count.
cli::ExitCode print_sane(const std::vector<probe::SaneRow>& rows, double tolerance,
                         const commands::OpenModelOptions& options, cli::Session& session);

}  // namespace masque::attn_probe
