#include "text/unicode/unicode.hpp"

#include <algorithm>

#include "base/escape.hpp"

namespace masque::text {

namespace {

std::u32string_view mapping(const std::uint8_t* blocks, const std::uint16_t* offsets, char32_t c) {
  const std::size_t block = blocks[c / tables::kBlockSize];
  const std::size_t offset = offsets[block * tables::kBlockSize + c % tables::kBlockSize];
  return {tables::kPool + offset + 1, tables::kPool[offset]};
}

/// Whether one of the ranges holds it.
bool in_ranges(const char32_t* ranges, std::size_t count, char32_t c) {
  const char32_t* end = ranges + 2 * count;
  const char32_t* next = std::upper_bound(ranges, end, c);
  const auto place = static_cast<std::size_t>(next - ranges);
  return place % 2 == 1 || (place > 0 && ranges[place - 1] == c);
}

}  // namespace

bool is_cased(char32_t c) { return in_ranges(tables::kCased, tables::kCasedCount, c); }

bool is_case_ignorable(char32_t c) {
  return in_ranges(tables::kCaseIgnorable, tables::kCaseIgnorableCount, c);
}

unsigned script_of(char32_t c) {
  const auto* ranges = tables::kScriptRange;
  // The first range that ends at or after c.
  std::size_t low = 0;
  std::size_t high = tables::kScriptCount;
  while (low < high) {
    const std::size_t middle = (low + high) / 2;
    if (ranges[2 * middle + 1] < c) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low < tables::kScriptCount && ranges[2 * low] <= c ? tables::kScript[low] : 0;
}

std::u32string_view lower_case(char32_t c) {
  return mapping(tables::kLowerBlock, tables::kLowerOffset, c);
}

std::u32string_view canonical_decomposition(char32_t c) {
  return mapping(tables::kCanonicalBlock, tables::kCanonicalOffset, c);
}

std::u32string_view compatible_decomposition(char32_t c) {
  return mapping(tables::kCompatibleBlock, tables::kCompatibleOffset, c);
}

char32_t compose(char32_t first, char32_t second) {
  if (first - kHangulL < kHangulLCount && second - kHangulV < kHangulVCount) {
    return kHangulBase + ((first - kHangulL) * kHangulVCount + (second - kHangulV)) * kHangulTCount;
  }
  if (is_hangul_syllable(first) && (first - kHangulBase) % kHangulTCount == 0 &&
      second - (kHangulT + 1) < kHangulTCount - 1) {
    return first + (second - kHangulT);
  }
  if (!is(first, kComposesFirst) || !is(second, kComposesSecond)) return 0;
  const std::uint64_t key = static_cast<std::uint64_t>(first) << 32 | second;
  const auto* end = tables::kPair + tables::kPairCount;
  const auto* found = std::lower_bound(tables::kPair, end, key);
  return found != end && *found == key ? tables::kComposed[found - tables::kPair] : 0;
}

std::size_t last_begin(std::string_view text) {
  std::size_t begin = text.size();
  while (begin > 0) {
    --begin;
    if ((static_cast<unsigned char>(text[begin]) & 0xC0) != 0x80) break;
  }
  return begin;
}

char32_t last_code_point(std::string_view text) {
  char32_t code_point = 0;
  decode_utf8(text.substr(last_begin(text)), code_point);
  return code_point;
}

bool is_white_space(char32_t c) { return is(c, kWhiteSpace); }

bool is_word(char32_t c) { return is(c, kWord); }

}  // namespace masque::text
