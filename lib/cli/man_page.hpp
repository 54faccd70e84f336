// The manual page of a tool, from the same declarations that parsing and --help follow.
#pragma once

#include <string>
#include <string_view>

#include "cli/command.hpp"

namespace masque::cli {

/// `text` as roff that prints it, whatever it holds; in a text line or as a macro's argument.
std::string roff(std::string_view text);

/// One page, section 1, with `tool` and all its sub-commands, in macros of man(7). ASCII, and the
/// same on every run: no date.
std::string man_page(const Command& tool);

}  // namespace masque::cli
