// Options of what is scored at which lengths, as the commands that train and those that read a
// checkpoint have them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "cli/command.hpp"

namespace masque::length_gen {

/// --eval-lengths; `help` says what the numbers count.
void add_eval_lengths(cli::Command& command, std::string& lengths, const std::string& help);
/// --window; `what` is done with it.
void add_windows(cli::Command& command, std::optional<std::string>& windows,
                 const std::string& what);
/// --eval-tokens of the text of the option `text`.
void add_eval_tokens(cli::Command& command, std::int64_t& tokens, const std::string& text);

/// Masks separated by semicolons, as people type them: each explicit(FILE) in `list` becomes what
/// the file holds. Throws UsageError for what is no mask, InputError for a file that cannot be
/// read.
std::string masks_with_files_read(const std::string& list);

}  // namespace masque::length_gen
