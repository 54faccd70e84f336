#include "text/code_points.hpp"

#include "base/escape.hpp"
#include "text/unicode/unicode.hpp"

namespace masque::text {

std::size_t last_begin(std::string_view text) {
  std::size_t begin = text.size();
  while (begin > 0) {
    --begin;
    if ((static_cast<unsigned char>(text[begin]) & 0xC0) != 0x80) break;
  }
  return begin;
}

char32_t last_code_point(std::string_view text) {
  char32_t code_point = 0;
  decode_utf8(text.substr(last_begin(text)), code_point);
  return code_point;
}

std::size_t count_code_points(std::string_view text) {
  std::size_t count = 0;
  for (const char c : text) count += (static_cast<unsigned char>(c) & 0xC0) != 0x80 ? 1 : 0;
  return count;
}

bool is_white_space(char32_t c) { return is(c, kWhiteSpace); }

bool is_word(char32_t c) { return is(c, kWord); }

}  // namespace masque::text
