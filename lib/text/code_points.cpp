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

bool is_white_space(char32_t c) { return is(c, kWhiteSpace); }

bool is_word(char32_t c) { return is(c, kWord); }

}  // namespace masque::text
