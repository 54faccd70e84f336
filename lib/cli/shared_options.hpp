// Arguments and options that commands of several tools have with the same words. Those of
// CommonOptions are in session.hpp.
#pragma once

#include <string>

#include "cli/command.hpp"

namespace masque::cli {

/// Declares the argument `name` of `command`, the checkpoint that is read; `path` receives it.
void add_checkpoint(Command& command, std::string& path, const std::string& name = "CHECKPOINT");

/// Declares --no-special-in-text of a `command` that encodes text: special tokens in the text are
/// plain text if `no_special_in_text` becomes true.
void add_no_special_in_text(Command& command, bool& no_special_in_text);

/// Declares --force of a `command` whose output may be a folder: an existing one is replaced if
/// `force` becomes true.
void add_force(Command& command, bool& force);

}  // namespace masque::cli
