#include "nn/attention/row_mask.hpp"

#include <algorithm>
#include <bit>

#include "base/divide.hpp"

namespace masque::nn {

RowMask::RowMask(const mask::BlockMap* blocks, Index keys)
    : blocks_(blocks), keys_(keys), words_(static_cast<std::size_t>(divide_up(keys, 64))) {}

void RowMask::read(Index query) {
  const bool all = blocks_ == nullptr;
  for (std::size_t w = 0; w < words_.size(); ++w) {
    words_[w] = all ? mask::low_bits(keys_ - static_cast<Index>(w) * 64) : 0;
  }
  if (!all) {
    for (const mask::BlockEntry& entry : blocks_->row(query / mask::BlockMap::kBlock)) {
      const auto w = static_cast<std::size_t>(entry.block);
      words_[w] =
          entry.tile < 0
              ? mask::low_bits(keys_ - static_cast<Index>(w) * 64)
              : blocks_->tile(entry)[static_cast<std::size_t>(query % mask::BlockMap::kBlock)];
    }
  }
  count_ = 0;
  for (const std::uint64_t word : words_) count_ += std::popcount(word);
}

void RowMask::keep(std::span<const Index> keys) {
  std::vector<std::uint64_t> kept(words_.size(), 0);
  for (const Index key : keys)
    kept[static_cast<std::size_t>(key / 64)] |= std::uint64_t{1} << (key % 64);
  count_ = 0;
  for (std::size_t w = 0; w < words_.size(); ++w) {
    words_[w] &= kept[w];
    count_ += std::popcount(words_[w]);
  }
}

}  // namespace masque::nn
