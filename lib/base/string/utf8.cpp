#include "base/string/utf8.hpp"

#include <algorithm>
#include <cstring>

#include "base/escape.hpp"

namespace masque {

namespace {

bool is_continuation(char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }

/// Bytes of an ill-formed sequence that one U+FFFD stands for: a truncated but so far good
/// sequence, or a single byte.
std::size_t maximal_subpart(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned lead = byte(0);
  std::size_t length = 0;
  unsigned low = 0x80;
  unsigned high = 0xBF;
  if (lead >= 0xC2 && lead <= 0xDF) {
    length = 2;
  } else if (lead >= 0xE0 && lead <= 0xEF) {
    length = 3;
    if (lead == 0xE0) low = 0xA0;
    if (lead == 0xED) high = 0x9F;
  } else if (lead >= 0xF0 && lead <= 0xF4) {
    length = 4;
    if (lead == 0xF0) low = 0x90;
    if (lead == 0xF4) high = 0x8F;
  } else {
    return 1;
  }
  std::size_t i = 1;
  for (; i < length && i < text.size(); ++i) {
    if (byte(i) < (i == 1 ? low : 0x80U) || byte(i) > (i == 1 ? high : 0xBFU)) break;
  }
  return i;
}

}  // namespace

std::size_t valid_utf8_prefix(std::string_view text) {
  std::size_t at = 0;
  while (at < text.size()) {
    if (at + 8 <= text.size()) {
      std::uint64_t word = 0;
      std::memcpy(&word, text.data() + at, 8);
      if ((word & 0x8080808080808080) == 0) {
        at += 8;
        continue;
      }
    }
    if (static_cast<unsigned char>(text[at]) < 0x80) {
      ++at;
      continue;
    }
    char32_t code_point = 0;
    const int length = decode_utf8(text.substr(at, 4), code_point);
    if (length == 0) return at;
    at += static_cast<std::size_t>(length);
  }
  return at;
}

std::uint64_t append_replacing_invalid(std::string_view text, std::string& out) {
  std::uint64_t replaced = 0;
  while (!text.empty()) {
    const std::size_t valid = valid_utf8_prefix(text);
    out += text.substr(0, valid);
    text.remove_prefix(valid);
    if (text.empty()) break;
    out += "\xEF\xBF\xBD";
    text.remove_prefix(maximal_subpart(text));
    ++replaced;
  }
  return replaced;
}

std::size_t count_code_points(std::string_view text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return !is_continuation(c); }));
}

}  // namespace masque
