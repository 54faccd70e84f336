// The mask whose cells are written out.
#include <fmt/format.h>

#include "base/divide.hpp"
#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/string/split.hpp"
#include "mask/expression.hpp"
#include "mask/zoo.hpp"

namespace masque::mask {

namespace {

constexpr Index kDigitBits = 4;

constexpr std::string_view kHexDigits = "0123456789abcdef";

Index digits_of_row(Index keys) { return divide_up(keys, kDigitBits); }

/// Sets the cells of `row` from its digits. Throws UsageError.
void set_row(std::string_view digits, Index row, BitMatrix& bits) {
  const auto refuse = [&](const std::string& problem) {
    throw UsageError(fmt::format("matrix: row {}: {}", row, problem));
  };
  if (std::ssize(digits) != digits_of_row(bits.columns())) {
    refuse(fmt::format("found {} digits, expected {} for {} keys", digits.size(),
                       digits_of_row(bits.columns()), bits.columns()));
  }
  for (std::size_t i = 0; i < digits.size(); ++i) {
    const std::size_t digit = kHexDigits.find(digits[i]);
    if (digit == std::string_view::npos)
      refuse(fmt::format("found '{}', expected digits 0 to 9 and a to f", escape(digits)));
    for (Index bit = 0; bit < kDigitBits; ++bit) {
      if ((digit >> (kDigitBits - 1 - bit) & 1) == 0) continue;
      const Index key = static_cast<Index>(i) * kDigitBits + bit;
      if (key >= bits.columns())
        refuse(fmt::format("shows key {}, expected keys below {}", key, bits.columns()));
      bits.set(row, key);
    }
  }
}

const MaskKind kMatrix{
    "matrix",
    {{"keys", MaskParameterKind::kCount, {}, 1}, {"rows", MaskParameterKind::kText}},
    "bit j of row i is 1, in hexadecimal, the first key first; / between rows",
    "any mask, written out: what explicit(FILE) becomes in a config.json",
    "",
    R"(matrix(16,"8000/c000/e000/f000/f800/bc00/9e00/8f00/8780/83c0/81e0/80f0/8078/803c/801e/800f"))",
    [](const MaskValues& v, Lengths l) {
      const std::vector<std::string_view> rows = split(v.text(), '/');
      if (std::ssize(rows) != l.queries || v.count("keys") != l.keys) {
        throw UsageError(fmt::format("matrix: {} × {} cells, expected {} × {}", rows.size(),
                                     v.count("keys"), l.queries, l.keys));
      }
      BitMatrix bits(l.queries, l.keys);
      for (std::size_t i = 0; i < rows.size(); ++i) set_row(rows[i], static_cast<Index>(i), bits);
      return from_bits(std::move(bits));
    },
    nullptr,
    Fits::kSquare,
    [](const MaskValues& v) -> std::optional<Lengths> {
      return Lengths{std::ssize(split(v.text(), '/')), v.count("keys")};
    }};
const MaskRegistration kMatrixRegistration{kMatrix};

}  // namespace

MaskExpression matrix_mask(const BitMatrix& bits) {
  std::string rows;
  rows.reserve(static_cast<std::size_t>(bits.rows() * (digits_of_row(bits.columns()) + 1)));
  for (Index row = 0; row < bits.rows(); ++row) {
    if (row > 0) rows += '/';
    for (Index key = 0; key < bits.columns(); key += kDigitBits) {
      std::size_t digit = 0;
      for (Index bit = 0; bit < kDigitBits; ++bit) {
        const bool shown = key + bit < bits.columns() && bits.get(row, key + bit);
        digit = digit << 1 | static_cast<std::size_t>(shown);
      }
      rows += kHexDigits[digit];
    }
  }
  return {"matrix", {{"", std::to_string(bits.columns())}, {"", std::move(rows), true}}};
}

}  // namespace masque::mask
