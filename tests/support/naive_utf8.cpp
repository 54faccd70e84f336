#include "support/naive_utf8.hpp"

#include <cstdint>
#include <cstring>

#include "base/escape.hpp"

namespace masque::test {

namespace {

/// Bytes of ASCII at the start of a text; stops short of the end by up to seven.
std::size_t ascii_run(std::string_view text) {
  std::size_t i = 0;
  for (; i + 8 <= text.size(); i += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, text.data() + i, 8);
    if ((word & 0x8080808080808080U) != 0) break;
  }
  return i;
}

/// Bytes of valid UTF-8 at the start of a text.
std::size_t valid_run(std::string_view text) {
  std::size_t i = 0;
  while (i < text.size()) {
    i += ascii_run(text.substr(i));
    if (i >= text.size()) break;
    if (static_cast<unsigned char>(text[i]) < 0x80) {
      ++i;
      continue;
    }
    char32_t code_point = 0;
    const int size = decode_utf8(text.substr(i), code_point);
    if (size == 0) return i;
    i += static_cast<std::size_t>(size);
  }
  return i;
}

bool continues(std::string_view text, std::size_t i, unsigned low = 0x80, unsigned high = 0xBF) {
  if (i >= text.size()) return false;
  const auto byte = static_cast<unsigned char>(text[i]);
  return byte >= low && byte <= high;
}

/// Length of the maximal subpart at the start of a text that is no valid sequence.
std::size_t bad_length(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text[0]);
  if (lead < 0xC2 || lead > 0xF4) return 1;
  if (lead < 0xE0) return 1;
  const unsigned low = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
  const unsigned high = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
  if (!continues(text, 1, low, high)) return 1;
  if (lead < 0xF0) return 2;
  return continues(text, 2) ? 3 : 2;
}

}  // namespace

bool naive_valid_utf8(std::string_view text) { return valid_run(text) == text.size(); }

std::size_t naive_repair_utf8(std::string_view text, std::string& out) {
  std::size_t count = 0;
  while (!text.empty()) {
    const std::size_t good = valid_run(text);
    out += text.substr(0, good);
    text.remove_prefix(good);
    if (text.empty()) break;
    out += "\xEF\xBF\xBD";
    ++count;
    text.remove_prefix(bad_length(text));
  }
  return count;
}

}  // namespace masque::test
