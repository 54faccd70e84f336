// Steps through valid UTF-8.
#pragma once

#include <cstddef>
#include <string_view>

namespace masque::text {

/// Bytes of the code point that starts with `lead`; 1 for a byte that starts none.
inline std::size_t char_bytes(char lead) {
  const auto byte = static_cast<unsigned char>(lead);
  return byte < 0xC0 ? 1U : byte < 0xE0 ? 2U : byte < 0xF0 ? 3U : 4U;
}

/// Bytes of the code point at text[at], never beyond the end.
inline std::size_t char_bytes(std::string_view text, std::size_t at) {
  const std::size_t size = char_bytes(text[at]);
  return size < text.size() - at ? size : text.size() - at;
}

/// Whether all of it is UTF-8.
bool valid_utf8(std::string_view text);

inline std::size_t count_chars(std::string_view text) {
  std::size_t count = 0;
  for (const char c : text) count += (static_cast<unsigned char>(c) & 0xC0U) != 0x80U ? 1U : 0U;
  return count;
}

}  // namespace masque::text
