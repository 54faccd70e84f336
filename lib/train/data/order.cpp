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

std::uint64_t EpochOrder::shuffled(std::uint64_t x, std::uint64_t epoch, bool back) const {
  const auto size = static_cast<std::uint64_t>(size_);
  const RandomStream random(seed_, "train order", epoch);
  for (std::uint64_t i = 0; i < rounds_; ++i) {
    // Each round pairs x with K − x; a bit that both agree on says whether they change places. So a
    // round undoes itself.
    const std::uint64_t round = back ? rounds_ - 1 - i : i;
    const PhiloxBlock key = random.block(round);
    const std::uint64_t sum = (key[0] | std::uint64_t{key[1]} << 32) % size;
    const std::uint64_t partner = (sum + size - x) % size;
    const PhiloxBlock bit = random.block((round + 1) << kSizeBits | std::max(x, partner));
    if ((bit[0] & 1U) != 0) x = partner;
  }
  return x;
}

EpochOrder::Cursor EpochOrder::at(std::uint64_t n) const {
  const auto size = static_cast<std::uint64_t>(size_);
  const std::uint64_t epoch = n / size;
  return {epoch, static_cast<Index>(shuffled(n % size, epoch, false))};
}

std::uint64_t EpochOrder::place(const Cursor& cursor) const {
  MASQUE_CHECK(cursor.item >= 0 && cursor.item < size_);
  return cursor.epoch * static_cast<std::uint64_t>(size_) +
         shuffled(static_cast<std::uint64_t>(cursor.item), cursor.epoch, true);
}

}  // namespace masque::train
