#include "probe/write/word_text.hpp"

#include <algorithm>

#include "base/escape.hpp"
#include "base/split.hpp"
#include "text/code_points.hpp"

namespace masque::probe {

namespace {

bool is_capital(char c) { return c >= 'A' && c <= 'Z'; }
bool is_small(char c) { return c >= 'a' && c <= 'z'; }

}  // namespace

std::u32string characters(std::string_view text) {
  std::u32string out;
  while (!text.empty()) {
    char32_t c = 0;
    const int size = decode_utf8(text, c);
    if (size == 0) break;
    out.push_back(c);
    text.remove_prefix(static_cast<std::size_t>(size));
  }
  return out;
}

bool has_letter(std::u32string_view text) {
  return std::ranges::any_of(
      text, [](char32_t c) { return text::is_word(c) && c != U'_' && (c < U'0' || c > U'9'); });
}

bool has_white_space(std::u32string_view text) {
  return std::ranges::any_of(text, text::is_white_space);
}

std::string shown(const text::Tokenizer& tokenizer, const std::vector<TokenId>& ids) {
  return std::string(trim(tokenizer.decode(ids, false)));
}

std::string in_case(std::string text, std::string_view in_line, std::string_view as_read) {
  const bool lowered =
      !in_line.empty() && !as_read.empty() && is_capital(in_line[0]) && is_small(as_read[0]);
  if (lowered && !text.empty() && is_small(text[0])) text[0] = static_cast<char>(text[0] - 32);
  return text;
}

}  // namespace masque::probe
