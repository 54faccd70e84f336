// Text by the columns that it takes: East Asian characters are two wide, combining marks none.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace masque::draw {

/// Columns of the character `c` in a font of fixed width: 0, 1 or 2, by its block of Unicode.
int columns_of(char32_t c);

/// A character of a text.
struct Character {
  char32_t code_point = 0;  ///< U+FFFD: perhaps a byte that is no UTF-8
  std::string_view bytes;   ///< in the text
  int columns = 0;          ///< as columns_of() says
};

/// The character at the start of `text`, which is not empty; U+FFFD, one byte, if it is no UTF-8.
/// Its bytes are a view of `text`.
Character first_character(std::string_view text);

/// Columns of `text` in UTF-8.
int text_columns(std::string_view text);

/// `text` if it has at most `columns` columns, else its start with `mark` after it, as many columns
/// together.
std::string shorten(std::string_view text, int columns, std::string_view mark = "…");

/// `text` as lines of at most `columns` columns, broken at spaces; longer words are cut. At most
/// `lines` of them, at least 1, the last one shortened with `mark` if more would follow.
std::vector<std::string> wrap(std::string_view text, int columns, int lines,
                              std::string_view mark = "…");

/// `text` with everything beyond ASCII as '?', two for a wide character, none for a combining mark.
std::string ascii_only(std::string_view text);

}  // namespace masque::draw
