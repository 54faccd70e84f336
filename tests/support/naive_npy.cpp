#include "support/naive_npy.hpp"

#include <algorithm>
#include <map>

namespace masque::test {

namespace {

using Tokens = std::vector<std::string>;

bool is_word(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

/// Words, signs, and strings with a '"' in front; nothing if a string does not end.
std::optional<Tokens> tokens_of(std::string_view text) {
  Tokens tokens;
  for (std::size_t i = 0; i < text.size();) {
    std::size_t end = i + 1;
    if (text[i] == ' ' || text[i] == '\t' || text[i] == '\r' || text[i] == '\n') {
    } else if (text[i] == '\'' || text[i] == '"') {
      while (end < text.size() && text[end] != text[i]) ++end;
      if (end == text.size()) return std::nullopt;
      const std::string inside(text.substr(i + 1, end - i - 1));
      if (inside.find_first_of("\\\r\n") != std::string::npos) return std::nullopt;
      tokens.push_back('"' + inside);
      ++end;
    } else {
      while (is_word(text[i]) && end < text.size() && is_word(text[end])) ++end;
      tokens.emplace_back(text.substr(i, end - i));
    }
    i = end;
  }
  return tokens;
}

/// The parts between commas outside parentheses; an empty one at the end is dropped.
std::vector<Tokens> parts_of(const Tokens& tokens) {
  std::vector<Tokens> parts(1);
  int depth = 0;
  for (const std::string& token : tokens) {
    depth += token == "(" ? 1 : token == ")" ? -1 : 0;
    if (token == "," && depth == 0) {
      parts.emplace_back();
    } else {
      parts.back().push_back(token);
    }
  }
  if (parts.back().empty()) parts.pop_back();
  return parts;
}

Tokens inside(const Tokens& tokens) { return {tokens.begin() + 1, tokens.end() - 1}; }

bool enclosed(const Tokens& tokens, const char* open, const char* close) {
  return tokens.size() >= 2 && tokens.front() == open && tokens.back() == close;
}

std::optional<std::uint64_t> number_of(std::string text) {
  if (text.ends_with('L')) text.pop_back();
  if (text.empty() || (text.size() > 1 && text[0] == '0')) return std::nullopt;
  std::uint64_t value = 0;
  for (const char c : text) {
    if (c < '0' || c > '9') return std::nullopt;
    if (__builtin_mul_overflow(value, 10, &value)) return std::nullopt;
    if (__builtin_add_overflow(value, c - '0', &value)) return std::nullopt;
  }
  return value;
}

std::optional<std::vector<std::uint64_t>> shape_of(const Tokens& tokens) {
  if (!enclosed(tokens, "(", ")")) return std::nullopt;
  const Tokens numbers = inside(tokens);
  std::vector<std::uint64_t> shape;
  for (const Tokens& part : parts_of(numbers)) {
    const auto number = part.size() == 1 ? number_of(part[0]) : std::nullopt;
    if (!number) return std::nullopt;
    shape.push_back(*number);
  }
  if (shape.size() > 64 || numbers.size() == 1) return std::nullopt;
  return shape;
}

const std::map<std::string, std::pair<std::string, std::size_t>> kTypes = {
    {"b1", {"BOOL", 1}}, {"i1", {"I8", 1}},  {"i2", {"I16", 2}}, {"i4", {"I32", 4}},
    {"i8", {"I64", 8}},  {"u1", {"U8", 1}},  {"u2", {"U16", 2}}, {"u4", {"U32", 4}},
    {"u8", {"U64", 8}},  {"f2", {"F16", 2}}, {"f4", {"F32", 4}}, {"f8", {"F64", 8}},
    {"c8", {"C64", 8}}};

/// Element `i` of the row-major order: its place in the column-major one.
std::uint64_t column_major(std::uint64_t i, const std::vector<std::uint64_t>& shape) {
  std::uint64_t place = 0;
  for (std::size_t axis = shape.size(); axis-- > 0; i /= shape[axis]) {
    std::uint64_t before = 1;
    for (std::size_t other = 0; other < axis; ++other) before *= shape[other];
    place += i % shape[axis] * before;
  }
  return place;
}

std::optional<std::string_view> header_of(std::string_view file) {
  if (file.size() < 10 || file.substr(0, 6) != "\x93NUMPY" || file[7] != 0) return std::nullopt;
  if (file[6] < 1 || file[6] > 3) return std::nullopt;
  const std::size_t width = file[6] == 1 ? 2 : 4;
  if (file.size() < 8 + width) return std::nullopt;
  std::size_t length = 0;
  for (std::size_t i = width; i-- > 0;) {
    length = length * 256 + static_cast<unsigned char>(file[8 + i]);
  }
  if (length > 10'000 || length > file.size() - 8 - width) return std::nullopt;
  return file.substr(8 + width, length);
}

}  // namespace

std::optional<NaiveNpy> naive_npy(std::string_view file) {
  const auto header = header_of(file);
  const auto tokens = header ? tokens_of(*header) : std::nullopt;
  if (!tokens || !enclosed(*tokens, "{", "}")) return std::nullopt;
  std::map<std::string, Tokens> fields;
  for (const Tokens& part : parts_of(inside(*tokens))) {
    if (part.size() < 3 || part[1] != ":") return std::nullopt;
    if (!fields.emplace(part[0], Tokens(part.begin() + 2, part.end())).second) return std::nullopt;
  }
  const Tokens descr = fields["\"descr"];
  const Tokens order = fields["\"fortran_order"];
  const auto shape = shape_of(fields["\"shape"]);
  if (fields.size() != 3 || !shape || descr.size() != 1 || order.size() != 1) return std::nullopt;
  if (order[0] != "True" && order[0] != "False") return std::nullopt;
  if (descr[0].empty() || descr[0][0] != '"') return std::nullopt;
  std::string type = descr[0].substr(1);
  const bool big = type.starts_with('>');
  if (!type.empty() && std::string("<>=|").find(type[0]) != std::string::npos) type.erase(0, 1);
  if (!kTypes.contains(type)) return std::nullopt;
  const auto& [name, width] = kTypes.at(type);
  NaiveNpy npy{name, *shape, "", static_cast<std::uint64_t>(header->end() - file.begin())};
  std::uint64_t bits = 1;
  for (const std::uint64_t dimension : *shape) {
    if (__builtin_mul_overflow(bits, dimension, &bits)) return std::nullopt;
  }
  if (__builtin_mul_overflow(bits, 8 * width, &bits)) return std::nullopt;
  if (bits / 8 > file.size() - npy.data_begin) return std::nullopt;
  const std::string_view data = file.substr(npy.data_begin, bits / 8);
  for (std::uint64_t i = 0; i < bits / 8 / width; ++i) {
    const std::uint64_t place = order[0] == "True" ? column_major(i, *shape) : i;
    std::string element(data.substr(place * width, width));
    const std::size_t part = name == "C64" ? 4 : width;
    for (std::size_t at = 0; big && at < width; at += part) {
      std::reverse(element.begin() + static_cast<long>(at),
                   element.begin() + static_cast<long>(at + part));
    }
    npy.data += element;
  }
  return npy;
}

std::uint32_t naive_crc32(std::string_view bytes) {
  std::uint32_t crc = ~0U;
  for (const char c : bytes) {
    crc ^= static_cast<unsigned char>(c);
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1U ^ (crc % 2 == 1 ? 0xEDB88320U : 0U);
  }
  return ~crc;
}

}  // namespace masque::test
