#include "text/step/byte_level.hpp"

#include <array>
#include <utility>

#include "base/thread/interrupt.hpp"
#include "text/unicode/utf8.hpp"

namespace masque::text {

namespace {

constexpr bool is_printable(unsigned byte) {
  return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
}

/// Printable bytes stand for themselves; the others get U+0100, U+0101, … in order.
constexpr std::array<char16_t, 256> kChars = [] {
  std::array<char16_t, 256> chars{};
  char16_t next = 0x100;
  for (unsigned byte = 0; byte < 256; ++byte) {
    chars[byte] = is_printable(byte) ? static_cast<char16_t>(byte) : next++;
  }
  return chars;
}();

}  // namespace

char32_t byte_level_char(unsigned char byte) { return kChars[byte]; }

void byte_level(AlignedText& text) {
  AlignedText out;
  out.text.reserve(text.text.size() * 2);
  out.origin.reserve(text.text.size() * 2);
  SparseLooks looks;
  for (std::size_t i = 0; i < text.text.size(); ++i) {
    looks.step();
    append_utf8(out.text, byte_level_char(static_cast<unsigned char>(text.text[i])));
    out.origin.resize(out.text.size(), text.origin[i]);
  }
  text = std::move(out);
}

}  // namespace masque::text
