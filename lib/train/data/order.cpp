#include "train/data/order.hpp"

#include <algorithm>
#include <bit>

#include "base/error.hpp"

namespace masque::train {

namespace {

constexpr int kSizeBits = 40;

}  // namespace

EpochOrder::EpochOrder(Index size, std::uint64_t seed) : size_(size), seed_(seed) {
  MASQUE_CHECK(size >= 1 && size <= Index{1} << kSizeBits);
  // The paper's bound: some 6 log₂ N rounds are far from any test; small sizes need a few more.
  rounds_ = 6 * static_cast<std::uint64_t>(std::bit_width(static_cast<std::uint64_t>(size))) + 8;
}

EpochOrder::Cursor EpochOrder::at(std::uint64_t n) const {
  const auto size = static_cast<std::uint64_t>(size_);
  const std::uint64_t epoch = n / size;
  std::uint64_t x = n % size;
  const RandomStream random(seed_, "train order", epoch);
  for (std::uint64_t round = 0; round < rounds_; ++round) {
    // Each round pairs x with K − x; a bit that both agree on says whether they change places.
    const PhiloxBlock key = random.block(round);
    const std::uint64_t sum = (key[0] | std::uint64_t{key[1]} << 32) % size;
    const std::uint64_t partner = (sum + size - x) % size;
    const PhiloxBlock bit = random.block((round + 1) << kSizeBits | std::max(x, partner));
    if ((bit[0] & 1U) != 0) x = partner;
  }
  return {epoch, static_cast<Index>(x)};
}

}  // namespace masque::train
