// Copies of units, and their shares.
#include <doctest/doctest.h>

#include "grow/width_rules.hpp"

namespace masque::grow {

TEST_CASE("units are repeated in place, whole ones next to each other") {
  CHECK(kept_units(3).from == std::vector<Index>{0, 1, 2});
  CHECK(repeated_units(3, 2).from == std::vector<Index>{0, 0, 1, 1, 2, 2});
  CHECK(in_blocks(repeated_units(2, 3), 2).from ==
        std::vector<Index>{0, 1, 0, 1, 0, 1, 2, 3, 2, 3, 2, 3});
  UnitCopies both = repeated_units(2, 2);
  append_units(both, kept_units(2), 2);
  CHECK(both.from == std::vector<Index>{0, 0, 1, 1, 2, 3});
}

TEST_CASE("shares of the copies of an element sum to 1, and differ only where they are drawn") {
  UnitCopies equal = in_blocks(repeated_units(2, 3), 2);
  share_equally(equal);
  for (const double share : equal.share) CHECK(share == 1.0 / 3);
  UnitCopies drawn = in_blocks(repeated_units(20, 3), 2);
  share_unequally(drawn, RandomStream(1, "x"));
  std::vector<double> sums(40, 0.0);
  for (std::size_t i = 0; i < drawn.from.size(); ++i) {
    CHECK(drawn.share[i] > 1.0 / 9);
    CHECK(drawn.share[i] < 1.0);
    CHECK(drawn.share[i] != 1.0 / 3);
    sums[static_cast<std::size_t>(drawn.from[i])] += drawn.share[i];
  }
  for (const double sum : sums) CHECK(sum == doctest::Approx(1).epsilon(1e-15));
  UnitCopies again = in_blocks(repeated_units(20, 3), 2);
  share_unequally(again, RandomStream(1, "x"));
  CHECK(again.share == drawn.share);
}

TEST_CASE("drawn copies are next to each other, as many as asked, and share equally") {
  UnitCopies units = drawn_units(4, 10, RandomStream(1, "x"));
  CHECK(units.size() == 10);
  std::vector<int> counts(4, 0);
  for (std::size_t i = 0; i < 10; ++i) {
    ++counts[static_cast<std::size_t>(units.from[i])];
    if (i > 0) CHECK(units.from[i] >= units.from[i - 1]);
  }
  for (const int count : counts) CHECK((count == 2 || count == 3));
  CHECK(units.from == drawn_units(4, 10, RandomStream(1, "x")).from);
  CHECK(drawn_units(4, 12, RandomStream(1, "x")).from == repeated_units(4, 3).from);
  bool differ = false;
  for (std::uint64_t seed = 2; seed < 10; ++seed)
    differ = differ || drawn_units(4, 10, RandomStream(seed, "x")).from != units.from;
  CHECK(differ);
  share_equally(units);
  std::vector<double> sums(4, 0.0);
  for (std::size_t i = 0; i < 10; ++i)
    sums[static_cast<std::size_t>(units.from[i])] += units.share[i];
  for (const double sum : sums) CHECK(sum == doctest::Approx(1).epsilon(1e-15));
}

}  // namespace masque::grow
