// Text by the columns that it takes: East Asian characters are two wide, combining marks none.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace masque::draw {

/// Columns of a character in a font of fixed width: 0, 1 or 2.
int columns_of(char32_t c);

struct Character {
  char32_t code_point = 0;
  std::string_view bytes;
  int columns = 0;
};

/// The character at the start of a text that is not empty; U+FFFD, one byte, if it is no UTF-8.
Character first_character(std::string_view text);

/// Columns of a text in UTF-8.
int text_columns(std::string_view text);

/// The text if it has at most `columns` columns, else its start with `mark` after it.
std::string shorten(std::string_view text, int columns, std::string_view mark = "…");

/// Lines of at most `columns`, broken at spaces; longer words are cut. At most `lines` of them, the
/// last one shortened if more would follow.
std::vector<std::string> wrap(std::string_view text, int columns, int lines,
                              std::string_view mark = "…");

/// Text with everything beyond ASCII as '?', two for a wide character.
std::string ascii_only(std::string_view text);

}  // namespace masque::draw
