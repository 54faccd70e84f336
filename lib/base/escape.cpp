#include "base/escape.hpp"

#include <algorithm>
#include <iterator>

#include <fmt/format.h>

namespace masque {

int decode_utf8(std::string_view text, char32_t& code_point) {
  if (text.empty()) return 0;
  const auto lead = static_cast<unsigned char>(text[0]);
  if (lead < 0x80) {
    code_point = lead;
    return 1;
  }
  const int length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || text.size() < static_cast<std::size_t>(length)) return 0;
  char32_t value = lead & (0x7FU >> length);
  for (int i = 1; i < length; ++i) {
    const auto next = static_cast<unsigned char>(text[static_cast<std::size_t>(i)]);
    if ((next & 0xC0) != 0x80) return 0;
    value = (value << 6) | (next & 0x3F);
  }
  const bool overlong = (length == 3 && value < 0x800) || (length == 4 && value < 0x10000);
  if (overlong || value > 0x10FFFF || (value >= 0xD800 && value <= 0xDFFF)) return 0;
  code_point = value;
  return length;
}

bool is_bidirectional_control(char32_t c) {
  return c == 0x61C || c == 0x200E || c == 0x200F || (c >= 0x202A && c <= 0x202E) ||
         (c >= 0x2066 && c <= 0x2069);
}

bool is_hidden_character(char32_t c) {
  return c < 0x20 || (c >= 0x7F && c < 0xA0) || c == 0x2028 || c == 0x2029 || c == 0xFEFF ||
         is_bidirectional_control(c);
}

bool has_hidden_characters(std::string_view text) {
  while (!text.empty()) {
    char32_t c = 0;
    const int length = decode_utf8(text, c);
    if (length == 0 || is_hidden_character(c)) return true;
    text.remove_prefix(static_cast<std::size_t>(length));
  }
  return false;
}

namespace {

std::string spelled_out(std::string_view text, std::string_view backslash) {
  if (std::all_of(text.begin(), text.end(),
                  [](char c) { return c >= 0x20 && c < 0x7F && c != '\\'; })) {
    return std::string(text);  // nearly always
  }
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    char32_t c = 0;
    const int length = decode_utf8(text, c);
    if (length == 0) {
      fmt::format_to(std::back_inserter(out), "\\x{:02x}", static_cast<unsigned char>(text[0]));
      text.remove_prefix(1);
      continue;
    }
    if (c == '\\') {
      out += backslash;
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\t') {
      out += "\\t";
    } else if (!is_hidden_character(c)) {
      out += text.substr(0, static_cast<std::size_t>(length));
    } else if (c < 0x80) {
      fmt::format_to(std::back_inserter(out), "\\x{:02x}", static_cast<unsigned>(c));
    } else {
      fmt::format_to(std::back_inserter(out), "\\u{{{:x}}}", static_cast<unsigned>(c));
    }
    text.remove_prefix(static_cast<std::size_t>(length));
  }
  return out;
}

}  // namespace

std::string escape(std::string_view text) { return spelled_out(text, "\\\\"); }

std::string escape_hidden_characters(std::string_view text) { return spelled_out(text, "\\"); }

}  // namespace masque
