// Completion scripts for shells, from the same declarations that parsing and --help follow. They
// complete sub-commands, options, the words of a choice, and files where files can stand.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/command.hpp"

namespace masque::cli {

/// The shells that have one: bash, zsh, fish.
std::vector<std::string> completion_shells();

/// The script for one of them, by its index in completion_shells().
std::string completion(const Command& tool, std::size_t shell);

/// The script of a shell for a tool and all its sub-commands: text to be evaluated by that shell.
/// The declarations' texts are quoted for it.
std::string bash_completion(const Command& tool);
std::string zsh_completion(const Command& tool);
std::string fish_completion(const Command& tool);

/// What can stand for a value.
enum class CompletionKind { kNothing, kWords, kFiles, kFolders };

/// Of an option with a value, or of an argument. The name says whether it is a file.
CompletionKind completion_kind_of(const Entry& entry);

/// `text` in single quotes; `quote` stands for a single quote in them.
std::string shell_quoted(std::string_view text, std::string_view quote = "'\\''");

}  // namespace masque::cli
