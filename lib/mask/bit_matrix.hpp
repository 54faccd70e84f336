// Dense bits: exact analysis, small pictures, and masks that have no formula.
#pragma once

#include <vector>

#include "mask/mask.hpp"

namespace masque::mask {

/// Rows of bits, each in whole 64-bit words; unused bits are 0.
class BitMatrix {
 public:
  BitMatrix() = default;
  /// A matrix of `rows` × `columns` bits, all 0. Throws InputError above `kMaxBytes`.
  BitMatrix(Index rows, Index columns);

  /// Most bytes that a matrix may take: 4 GiB.
  static constexpr std::uint64_t kMaxBytes = std::uint64_t{4} << 30;

  /// Number of rows.
  Index rows() const { return rows_; }
  /// Number of columns: bits of a row.
  Index columns() const { return columns_; }
  /// 64-bit words of a row.
  Index words() const { return words_; }
  /// The bit at (`row`, `column`), which are not checked.
  bool get(Index row, Index column) const {
    return (row_words(row)[column / 64] >> (column % 64) & 1) != 0;
  }
  /// Sets the bit at (`row`, `column`), which are not checked, to `value`.
  void set(Index row, Index column, bool value = true) {
    std::uint64_t& word = row_words(row)[column / 64];
    const std::uint64_t bit = std::uint64_t{1} << (column % 64);
    word = value ? word | bit : word & ~bit;
  }
  /// The words() words of `row`: column j is bit j mod 64 of word ⌊j/64⌋. Valid as long as the
  /// matrix.
  const std::uint64_t* row_words(Index row) const { return data_.data() + row * words_; }
  /// The same words of `row` for writing; bits after the last column must stay 0.
  std::uint64_t* row_words(Index row) { return data_.data() + row * words_; }
  /// Bits `column` … `column + n − 1` of `row`, the first in bit 0; `n` from 1 to 64, not beyond
  /// the last column.
  std::uint64_t bits(Index row, Index column, int n) const;
  /// Number of set bits.
  std::uint64_t count() const;
  bool operator==(const BitMatrix&) const = default;

 private:
  Index rows_ = 0;
  Index columns_ = 0;
  Index words_ = 0;
  std::vector<std::uint64_t> data_;
};

/// Every cell of `mask`: a row for each query, a column for each key. Throws as BitMatrix does.
BitMatrix to_bits(const Mask& mask);

/// The mask whose cells are `bits`, which it keeps.
Mask from_bits(BitMatrix bits);

}  // namespace masque::mask
