#include "mask/bit_matrix.hpp"

#include <algorithm>
#include <bit>
#include <utility>

#include <fmt/format.h>

#include "base/divide.hpp"
#include "base/error.hpp"
#include "base/thread/interrupt.hpp"

namespace masque::mask {

namespace {

constexpr std::size_t kWordsBetweenPolls = std::size_t{1} << 20;

class BitNode final : public MaskNode {
 public:
  explicit BitNode(BitMatrix bits) : bits_(std::move(bits)) {}
  bool allows(Index q, Index k) const override { return bits_.get(q, k); }
  std::uint64_t bits(Index q, Index k0, int n) const override { return bits_.bits(q, k0, n); }

 private:
  BitMatrix bits_;
};

}  // namespace

BitMatrix::BitMatrix(Index rows, Index columns)
    : rows_(rows), columns_(columns), words_(divide_up(columns, 64)) {
  const double bytes = static_cast<double>(rows) * static_cast<double>(words_) * 8;
  if (!(bytes <= static_cast<double>(kMaxBytes))) {
    throw InputError(
        fmt::format("a matrix of {} × {} bits would take {:.3g} GB, expected at most {:.3g}", rows,
                    columns, bytes * 1e-9, static_cast<double>(kMaxBytes) * 1e-9));
  }
  // Piece by piece: where memory is touched for the first time, gigabytes of it take seconds.
  const auto size = static_cast<std::size_t>(rows * words_);
  data_.reserve(size);
  while (data_.size() < size) {
    throw_if_interrupted();
    data_.resize(std::min(size, data_.size() + kWordsBetweenPolls));
  }
}

std::uint64_t BitMatrix::bits(Index row, Index column, int n) const {
  const std::uint64_t* words = row_words(row) + column / 64;
  const int shift = static_cast<int>(column % 64);
  std::uint64_t found = words[0] >> shift;
  if (shift + n > 64) found |= words[1] << (64 - shift);
  return found & low_bits(n);
}

std::uint64_t BitMatrix::count() const {
  std::uint64_t sum = 0;
  for (Index i = 0; i < rows_ && words_ > 0; ++i) {
    throw_if_interrupted();
    const std::uint64_t* words = row_words(i);
    for (Index w = 0; w < words_; ++w) sum += static_cast<std::uint64_t>(std::popcount(words[w]));
  }
  return sum;
}

BitMatrix to_bits(const Mask& mask) {
  const auto [queries, keys] = mask.lengths();
  BitMatrix out(queries, keys);
  for (Index q = 0; q < queries; ++q) {
    throw_if_interrupted();
    std::uint64_t* words = out.row_words(q);
    for (Index k0 = 0; k0 < keys; k0 += 64) {
      words[k0 / 64] = mask.bits(q, k0, static_cast<int>(std::min<Index>(64, keys - k0)));
    }
  }
  return out;
}

Mask from_bits(BitMatrix bits) {
  const Lengths lengths{bits.rows(), bits.columns()};
  return {std::make_shared<BitNode>(std::move(bits)), lengths};
}

}  // namespace masque::mask
