// Text from files is shown only through this: a name may hold terminal commands.
#pragma once

#include <string>
#include <string_view>

namespace masque {

/// Returns `text` made safe to print: control characters (C0, DEL, C1), bidirectional controls,
/// line and paragraph separators, U+FEFF and bytes that are not UTF-8 become `\n`, `\t`, `\xNN` or
/// `\u{…}`; a backslash becomes two. Everything else stays. Cost O(n).
std::string escape(std::string_view text);

/// Whether a terminal shows what follows `code_point` in another order: U+061C, U+200E, U+200F,
/// U+202A to U+202E, U+2066 to U+2069.
bool is_bidirectional_control(char32_t code_point);

/// Returns the length in bytes, 1 to 4, of the valid UTF-8 sequence at the start of `text`; 0 if
/// there is none (overlong forms, surrogates and values beyond U+10FFFF are invalid). Sets
/// `code_point` to its code point; leaves it as it was at 0.
int decode_utf8(std::string_view text, char32_t& code_point);

// Characters that a terminal obeys instead of showing them.

/// Whether escape() spells `code_point` out: a control character (C0, DEL, C1), a bidirectional
/// control, a line or paragraph separator, or U+FEFF.
bool is_hidden_character(char32_t code_point);

/// Whether `text` has a hidden character, or a byte that is not UTF-8. Cost O(n).
bool has_hidden_characters(std::string_view text);

/// Returns `text` as escape() does, but with its backslashes as they are: for a line in which the
/// text of files has been escaped already, or should have been. Cost O(n).
std::string escape_hidden_characters(std::string_view text);

}  // namespace masque
