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

}  // namespace masque::text
