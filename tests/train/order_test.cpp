// Every epoch takes every item once, in an order of its own.
#include "train/data/order.hpp"

#include <array>
#include <cmath>
#include <vector>

#include <doctest/doctest.h>

namespace masque::train {
namespace {

std::vector<Index> epoch_of(const EpochOrder& order, Index size, std::uint64_t epoch) {
  std::vector<Index> items;
  for (Index i = 0; i < size; ++i) {
    const EpochOrder::Cursor cursor =
        order.at(epoch * static_cast<std::uint64_t>(size) + static_cast<std::uint64_t>(i));
    CHECK(cursor.epoch == epoch);
    items.push_back(cursor.item);
  }
  return items;
}

TEST_CASE("an epoch is a permutation, and the next one another") {
  for (const Index size : {1, 2, 3, 4, 5, 6, 7, 16, 17, 63, 64, 65, 1000, 4097}) {
    CAPTURE(size);
    const EpochOrder order(size, 7);
    for (const std::uint64_t epoch : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{1000000}}) {
      std::vector<int> seen(static_cast<std::size_t>(size), 0);
      for (const Index item : epoch_of(order, size, epoch)) {
        REQUIRE(0 <= item);
        REQUIRE(item < size);
        ++seen[static_cast<std::size_t>(item)];
      }
      for (const int count : seen) REQUIRE(count == 1);
      for (Index i = 0; i < size; ++i) {
        const std::uint64_t n =
            epoch * static_cast<std::uint64_t>(size) + static_cast<std::uint64_t>(i);
        REQUIRE(order.place(order.at(n)) == n);
      }
    }
    if (size < 16) continue;
    CHECK(epoch_of(order, size, 0) != epoch_of(order, size, 1));
    CHECK(epoch_of(order, size, 0) != epoch_of(EpochOrder(size, 8), size, 0));
    CHECK(epoch_of(order, size, 3) == epoch_of(EpochOrder(size, 7), size, 3));
  }
}

TEST_CASE("all orders of four items come equally often") {
  constexpr int kEpochs = 6000;
  std::array<int, 256> count{};
  const EpochOrder order(4, 3);
  for (std::uint64_t epoch = 0; epoch < kEpochs; ++epoch) {
    std::size_t code = 0;
    for (const Index item : epoch_of(order, 4, epoch)) {
      code = code * 4 + static_cast<std::size_t>(item);
    }
    ++count.at(code);
  }
  int orders = 0;
  double chi = 0;
  for (const int found : count) {
    if (found == 0) continue;
    ++orders;
    chi += (found - kEpochs / 24.0) * (found - kEpochs / 24.0) / (kEpochs / 24.0);
  }
  CHECK(orders == 24);
  CHECK(chi < 23 + 3 * std::sqrt(2 * 23.0));  // χ² of 23 degrees: mean 23, variance 46
}

}  // namespace
}  // namespace masque::train
