// Code points of valid UTF-8, and two of their classes.
#pragma once

#include <cstddef>
#include <string_view>

namespace masque::text {

/// Where the last character of a text begins; 0 for an empty one.
std::size_t last_begin(std::string_view text);
/// The last character of a text that is not empty.
char32_t last_code_point(std::string_view text);

/// White_Space: the 25 code points of Rust's `char::is_whitespace` and of `\s`.
bool is_white_space(char32_t code_point);
/// `\w` of Rust's regex: letters, marks, decimal digits, connectors, join controls.
bool is_word(char32_t code_point);

}  // namespace masque::text
