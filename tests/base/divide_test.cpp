#include "base/divide.hpp"

#include <cstdint>

#include <doctest/doctest.h>

#include "base/types.hpp"

namespace masque {
namespace {

TEST_CASE("division rounds up, and multiples are those above") {
  CHECK(divide_up(0, 4) == 0);
  CHECK(divide_up(1, 4) == 1);
  CHECK(divide_up(4, 4) == 1);
  CHECK(divide_up(5, 4) == 2);
  CHECK(round_up(0, 4) == 0);
  CHECK(round_up(5, 4) == 8);
  CHECK(round_up(8, 4) == 8);
}

TEST_CASE("quotients have the wider of both types") {
  static_assert(std::is_same_v<decltype(divide_up(Index{1}, 8)), Index>);
  CHECK(divide_up(Index{1} << 40, 8) == Index{1} << 37);
  CHECK(round_up(8, std::int64_t{1} << 40) == std::int64_t{1} << 40);
}

}  // namespace
}  // namespace masque
