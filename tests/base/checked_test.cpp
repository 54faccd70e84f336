// Sums and products at the edge of 64 bits.
#include "base/checked.hpp"

#include <limits>

#include <doctest/doctest.h>

namespace masque {
namespace {

constexpr std::uint64_t kMax = std::numeric_limits<std::uint64_t>::max();
constexpr std::uint64_t k32 = std::uint64_t{1} << 32;

TEST_CASE("a sum that fits is the sum") {
  CHECK(checked_add(0, 0) == 0);
  CHECK(checked_add(kMax, 0) == kMax);
  CHECK(checked_add(kMax - 5, 5) == kMax);
}

TEST_CASE("a sum that does not fit is nothing") {
  CHECK(checked_add(kMax, 1) == std::nullopt);
  CHECK(checked_add(kMax, kMax) == std::nullopt);
  CHECK(checked_add(k32 << 31, k32 << 31) == std::nullopt);
}

TEST_CASE("a product that fits is the product") {
  CHECK(checked_multiply(0, kMax) == 0);
  CHECK(checked_multiply(kMax, 1) == kMax);
  CHECK(checked_multiply(k32 - 1, k32 + 1) == kMax);
}

TEST_CASE("a product that does not fit is nothing") {
  CHECK(checked_multiply(k32, k32) == std::nullopt);
  CHECK(checked_multiply(kMax, 2) == std::nullopt);
  CHECK(checked_multiply(kMax, kMax) == std::nullopt);
}

}  // namespace
}  // namespace masque
