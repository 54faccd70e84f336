// Code points of valid UTF-8, and two of their classes.
#pragma once

#include <cstddef>
#include <string_view>

namespace masque::text {

/// The byte at which the last character of `text` begins; 0 for an empty one.
std::size_t last_begin(std::string_view text);
/// The last character of `text`, which is not empty.
char32_t last_code_point(std::string_view text);

/// Whether `code_point` is White_Space: one of the 25 code points of Rust's `char::is_whitespace`
/// and of `\s`.
bool is_white_space(char32_t code_point);
/// Whether `code_point` is `\w` of Rust's regex: letters, marks, decimal digits, connectors, join
/// controls.
bool is_word(char32_t code_point);

}  // namespace masque::text
