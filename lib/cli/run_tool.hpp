// The start and the end of every tool.
#pragma once

#include <functional>
#include <string_view>

#include "cli/command.hpp"
#include "cli/session.hpp"
#include "cli/table.hpp"

namespace masque::cli {

/// Parses the command line as `declare` says, runs the chosen command, and turns whatever happens
/// into "tool: message" and an exit code: the only place that catches errors to end a program.
/// Also opens missing standard streams, and makes signals unwind.
int run_tool(std::string_view name, std::string_view summary, int argc, char** argv,
             const std::function<void(Command&)>& declare);

}  // namespace masque::cli
