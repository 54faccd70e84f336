// Characters that a terminal obeys instead of showing them.
#pragma once

#include <string>
#include <string_view>

namespace masque {

/// Whether escape() spells `code_point` out: a control character (C0, DEL, C1), a bidirectional
/// control, a line or paragraph separator, or U+FEFF.
bool is_hidden_character(char32_t code_point);

/// Whether `text` has a hidden character, or a byte that is not UTF-8. Cost O(n).
bool has_hidden_characters(std::string_view text);

/// Returns `text` as escape() does, but with its backslashes as they are: for a line in which the
/// text of files has been escaped already, or should have been. Cost O(n).
std::string escape_hidden_characters(std::string_view text);

}  // namespace masque
