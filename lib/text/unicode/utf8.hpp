// Stepping through valid UTF-8. Everything below text/ sees valid text only, so nothing is checked.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace masque::text {

/// Number of bytes of a character, by its byte `first`; 1 for a byte that is no first one.
inline std::size_t char_bytes(char first) {
  const auto byte = static_cast<unsigned char>(first);
  return byte < 0xC0 ? 1U : byte < 0xE0 ? 2U : byte < 0xF0 ? 3U : 4U;
}

/// Number of bytes of the character at byte `at` of `text`, never beyond the end.
inline std::size_t char_bytes(std::string_view text, std::size_t at) {
  const std::size_t size = char_bytes(text[at]);
  return size < text.size() - at ? size : text.size() - at;
}

/// The character that begins at byte `i` of `text`; moves `i` past it. The text is valid UTF-8.
inline char32_t next_char(std::string_view text, std::size_t& i) {
  const auto at = [&](std::size_t k) { return static_cast<unsigned char>(text[k]); };
  const char32_t first = at(i++);
  if (first < 0x80) return first;
  const auto more = [&](char32_t head) { return head << 6 | (at(i++) & 0x3F); };
  if (first < 0xE0) return more(first & 0x1F);
  if (first < 0xF0) return more(more(first & 0x0F));
  return more(more(more(first & 0x07)));
}

/// The character that ends before byte `i` > 0 of `text`; moves `i` to its begin.
inline char32_t previous_char(std::string_view text, std::size_t& i) {
  do --i;
  while ((static_cast<unsigned char>(text[i]) & 0xC0) == 0x80);
  std::size_t end = i;
  return next_char(text, end);
}

/// Writes `c` (no surrogate, below 0x110000) to `out`, 4 bytes at most; returns how many.
inline std::size_t put_utf8(char32_t c, char* out) {
  const auto byte = [](char32_t value) {
    return static_cast<char>(static_cast<unsigned char>(value));
  };
  const auto tail = [&](char32_t value) { return byte(0x80 | (value & 0x3F)); };
  if (c < 0x80) {
    out[0] = byte(c);
    return 1;
  }
  if (c < 0x800) {
    out[0] = byte(0xC0 | c >> 6);
    out[1] = tail(c);
    return 2;
  }
  if (c < 0x10000) {
    out[0] = byte(0xE0 | c >> 12);
    out[1] = tail(c >> 6);
    out[2] = tail(c);
    return 3;
  }
  out[0] = byte(0xF0 | c >> 18);
  out[1] = tail(c >> 12);
  out[2] = tail(c >> 6);
  out[3] = tail(c);
  return 4;
}

/// Appends `c` (as of put_utf8) to `out`.
inline void append_utf8(std::string& out, char32_t c) {
  char bytes[4];
  out.append(bytes, put_utf8(c, bytes));
}

}  // namespace masque::text
