// The start and the end of every tool.
#pragma once

#include <functional>
#include <string_view>

#include "cli/command.hpp"
#include "cli/session.hpp"
#include "cli/table.hpp"

namespace masque::cli {

/// Parses `argc` words of `argv`, as main has them, as `declare` says (called once, with the
/// command of the tool's `name` and `summary`), runs the chosen command, and turns whatever happens
/// into "tool: message" and the exit code that it returns: the only place that catches errors to
/// end a program. Also opens missing standard streams, raises the limit of open files, and makes
/// signals unwind: the process then ends by that signal.
int run_tool(std::string_view name, std::string_view summary, int argc, char** argv,
             const std::function<void(Command&)>& declare);

}  // namespace masque::cli
