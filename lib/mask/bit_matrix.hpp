// Dense bits: exact analysis, small pictures, and masks that have no formula.
#pragma once

#include <vector>

#include "mask/mask.hpp"

namespace masque::mask {

/// Rows of bits, each in whole 64-bit words; unused bits are 0.
class BitMatrix {
 public:
  BitMatrix() = default;
  /// All bits 0. Throws InputError above `kMaxBytes`.
  BitMatrix(Index rows, Index columns);

  static constexpr std::uint64_t kMaxBytes = std::uint64_t{4} << 30;

  Index rows() const { return rows_; }
  Index columns() const { return columns_; }
  Index words() const { return words_; }
  bool get(Index row, Index column) const {
    return (row_words(row)[column / 64] >> (column % 64) & 1) != 0;
  }
  void set(Index row, Index column, bool value = true) {
    std::uint64_t& word = row_words(row)[column / 64];
    const std::uint64_t bit = std::uint64_t{1} << (column % 64);
    word = value ? word | bit : word & ~bit;
  }
  const std::uint64_t* row_words(Index row) const { return data_.data() + row * words_; }
  std::uint64_t* row_words(Index row) { return data_.data() + row * words_; }
  /// Bits `column` … `column + n − 1` of a row, n from 1 to 64.
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

/// Every cell of a mask.
BitMatrix to_bits(const Mask& mask);

/// A mask from bits.
Mask from_bits(BitMatrix bits);

}  // namespace masque::mask
