// Words as text: their characters, and what tokens look like in a line.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "text/tokenizer.hpp"

namespace masque::probe {

/// The code points of a text, up to the first byte that is not UTF-8.
std::u32string characters(std::string_view text);
bool has_letter(std::u32string_view text);
bool has_white_space(std::u32string_view text);

/// What tokens look like in a text, without the space that may belong to the first.
std::string shown(const text::Tokenizer& tokenizer, const std::vector<TokenId>& ids);

/// With a capital in front where the word in the text has one (A to Z) and the tokenizer has
/// lowered it: `as_read`.
std::string in_case(std::string text, std::string_view in_line, std::string_view as_read);

}  // namespace masque::probe
