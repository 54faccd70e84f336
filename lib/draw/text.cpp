#include "draw/text.hpp"

#include <algorithm>
#include <iterator>

#include "base/escape.hpp"

namespace masque::draw {

namespace {

struct Run {
  char32_t first;
  char32_t last;
};

// Scripts and signs that East Asian fonts and terminals draw two columns wide (Unicode's W and F),
// by block rather than by character.
constexpr Run kWide[] = {
    {0x1100, 0x115F},   {0x231A, 0x231B},   {0x23E9, 0x23EC},   {0x25FD, 0x25FE},
    {0x2614, 0x2615},   {0x26A1, 0x26A1},   {0x2705, 0x2705},   {0x2728, 0x2728},
    {0x274C, 0x274C},   {0x2753, 0x2755},   {0x2757, 0x2757},   {0x2B1B, 0x2B1C},
    {0x2B50, 0x2B50},   {0x2E80, 0x303E},   {0x3041, 0x33FF},   {0x3400, 0x4DBF},
    {0x4E00, 0xA4CF},   {0xA960, 0xA97F},   {0xAC00, 0xD7A3},   {0xF900, 0xFAFF},
    {0xFE30, 0xFE6F},   {0xFF00, 0xFF60},   {0xFFE0, 0xFFE6},   {0x16FE0, 0x18CFF},
    {0x1AFF0, 0x1B2FF}, {0x1F18E, 0x1F18E}, {0x1F191, 0x1F19A}, {0x1F200, 0x1F320},
    {0x1F32D, 0x1F64F}, {0x1F680, 0x1F6FF}, {0x1F7E0, 0x1F7EB}, {0x1F90C, 0x1F9FF},
    {0x1FA70, 0x1FAFF}, {0x20000, 0x3FFFD},
};

// Marks that stand on the character before, and characters without a shape.
constexpr Run kCombining[] = {
    {0x0300, 0x036F}, {0x0483, 0x0489}, {0x0591, 0x05BD},   {0x05BF, 0x05BF}, {0x05C1, 0x05C2},
    {0x05C4, 0x05C5}, {0x0610, 0x061A}, {0x064B, 0x065F},   {0x0670, 0x0670}, {0x06D6, 0x06DC},
    {0x06DF, 0x06E4}, {0x0900, 0x0902}, {0x093A, 0x093A},   {0x093C, 0x093C}, {0x0941, 0x0948},
    {0x094D, 0x094D}, {0x0E31, 0x0E31}, {0x0E34, 0x0E3A},   {0x0E47, 0x0E4E}, {0x1AB0, 0x1AFF},
    {0x1DC0, 0x1DFF}, {0x200B, 0x200F}, {0x20D0, 0x20FF},   {0x302A, 0x302D}, {0x3099, 0x309A},
    {0xFE00, 0xFE0F}, {0xFE20, 0xFE2F}, {0xE0100, 0xE01EF},
};

template <std::size_t kCount>
bool contains(const Run (&runs)[kCount], char32_t c) {
  const Run* const run = std::upper_bound(std::begin(runs), std::end(runs), c,
                                          [](char32_t x, const Run& r) { return x < r.first; });
  return run != std::begin(runs) && c <= std::prev(run)->last;
}

}  // namespace

int columns_of(char32_t c) {
  if (c < 0x300) return 1;
  if (contains(kCombining, c)) return 0;
  return contains(kWide, c) ? 2 : 1;
}

Character first_character(std::string_view text) {
  Character character;
  const int length = decode_utf8(text, character.code_point);
  if (length == 0) character.code_point = 0xFFFD;
  character.bytes = text.substr(0, static_cast<std::size_t>(std::max(1, length)));
  character.columns = columns_of(character.code_point);
  return character;
}

int text_columns(std::string_view text) {
  int columns = 0;
  for (Character c; !text.empty(); text.remove_prefix(c.bytes.size())) {
    c = first_character(text);
    columns += c.columns;
  }
  return columns;
}

namespace {

/// The longest start of `text` with at most `columns` columns.
std::string_view fitting(std::string_view text, int columns) {
  std::size_t size = 0;
  while (size < text.size()) {
    const Character c = first_character(text.substr(size));
    if (c.columns > columns) break;
    columns -= c.columns;
    size += c.bytes.size();
  }
  return text.substr(0, size);
}

}  // namespace

std::string shorten(std::string_view text, int columns, std::string_view mark) {
  if (fitting(text, columns).size() == text.size()) return std::string(text);
  const int room = columns - text_columns(mark);
  if (room < 0) return std::string(fitting(mark, columns));
  return std::string(fitting(text, room)).append(mark);
}

std::vector<std::string> wrap(std::string_view text, int columns, int lines,
                              std::string_view mark) {
  std::vector<std::string> result;
  while (!text.empty()) {
    std::string_view line = fitting(text, columns);
    if (line.size() == text.size() || static_cast<int>(result.size()) + 1 == lines) {
      result.push_back(shorten(text, columns, mark));
      break;
    }
    if (text[line.size()] != ' ') {
      const std::size_t space = line.rfind(' ');
      if (space != std::string_view::npos && space > 0) line = line.substr(0, space);
    }
    if (line.empty()) line = first_character(text).bytes;  // wider than a line
    result.emplace_back(line);
    text.remove_prefix(line.size());
    while (text.starts_with(' ')) text.remove_prefix(1);
  }
  return result;
}

std::string ascii_only(std::string_view text) {
  std::string result;
  for (Character c; !text.empty(); text.remove_prefix(c.bytes.size())) {
    c = first_character(text);
    if (c.code_point < 0x80) {
      result += c.bytes;
    } else {
      result.append(static_cast<std::size_t>(c.columns), '?');
    }
  }
  return result;
}

}  // namespace masque::draw
