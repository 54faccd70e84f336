#include "cli/csv.hpp"

#include <algorithm>

#include "base/escape.hpp"

namespace masque::cli {

namespace {

bool is_plain(char c) { return c >= 0x20 && c < 0x7F && c != '"'; }

}  // namespace

std::string csv_text(std::string_view text, bool terminal) {
  std::string out = "\"";
  out.reserve(text.size() + 2);
  if (std::all_of(text.begin(), text.end(), is_plain)) {
    out += text;
    text = {};
  }
  while (!text.empty()) {
    char32_t c = 0;
    const int length = decode_utf8(text, c);
    const std::string_view piece = text.substr(0, static_cast<std::size_t>(std::max(length, 1)));
    const bool stays = c == '\t' || c == '\n' || c == '\\' || (c >= 0xA0 && !terminal);
    if (c == '"') {
      out += "\"\"";
    } else {
      out += stays ? std::string(piece) : escape(piece);
    }
    text.remove_prefix(piece.size());
  }
  return out + "\"";
}

std::string csv_name(std::string_view name, bool terminal) {
  const auto is_simple = [](char c) { return is_plain(c) && c != ',' && c != ' '; };
  if (!name.empty() && std::all_of(name.begin(), name.end(), is_simple)) return std::string(name);
  return csv_text(name, terminal);
}

}  // namespace masque::cli
