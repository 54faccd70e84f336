// Completion scripts for shells, from the same declarations that parsing and --help follow. They
// complete sub-commands, options, the words of a choice, and files where files can stand, or the
// names of models of the local Hugging Face cache.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/command.hpp"

namespace masque::cli {

/// The shells that have one: bash, zsh, fish.
std::vector<std::string> completion_shells();

/// The words of --completion: completion_shells(), then kCompletionHub.
std::vector<std::string> completion_words();
/// The word of --completion that prints names of models; the scripts call the tool with it.
inline constexpr const char* kCompletionHub = "hf";

/// What --completion prints for `tool` and an index `word` of completion_words(): the script for it
/// and all its sub-commands; or the names of the models in the local Hugging Face cache, a line
/// each.
std::string completion(const Command& tool, std::size_t word);

/// The script of bash for `tool` and all its sub-commands: text to be evaluated by that shell, the
/// declarations' texts quoted for it.
std::string bash_completion(const Command& tool);
/// The script of zsh for `tool` and all its sub-commands, quoted in the same way.
std::string zsh_completion(const Command& tool);
/// The script of fish for `tool` and all its sub-commands, quoted in the same way.
std::string fish_completion(const Command& tool);

/// What can stand for a value.
enum class CompletionKind {
  kNothing,  ///< nothing is offered
  kWords,    ///< Entry::words
  kFiles,    ///< files and folders
  kFolders   ///< folders alone
};

/// What a shell offers for `entry`, an option with a value or an argument: its words if it has
/// some; files for every other argument and for options whose value's name has FILE, DIR, OUTPUT,
/// CHECKPOINT, MODEL or PATH in it, folders if it is DIR alone; otherwise nothing. Where it offers
/// files and the word begins with "hf:", it offers names of models (kCompletionHub).
CompletionKind completion_kind_of(const Entry& entry);

/// `text` in single quotes; `quote` (by default POSIX's) stands for a single quote in them.
std::string shell_quoted(std::string_view text, std::string_view quote = "'\\''");

}  // namespace masque::cli
