// Arguments and options that commands of several tools have with the same words. Those of
// CommonOptions are in session.hpp.
#pragma once

#include <string>

#include "cli/command.hpp"

namespace masque::cli {

/// An argument: the checkpoint that is read.
void add_checkpoint(Command& command, std::string& path, const std::string& name = "CHECKPOINT");

/// --no-special-in-text of commands that encode text.
void add_no_special_in_text(Command& command, bool& no_special_in_text);

/// --force of commands whose output may be a folder.
void add_force(Command& command, bool& force);

}  // namespace masque::cli
