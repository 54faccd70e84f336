// Copies of units, and their shares.
#include "grow/unit_copies.hpp"

#include <doctest/doctest.h>

namespace masque::grow {

TEST_CASE("units are repeated in place, whole ones next to each other") {
  CHECK(kept_units(3).from == std::vector<Index>{0, 1, 2});
  CHECK(repeated_units(3, 1, 2).from == std::vector<Index>{0, 0, 1, 1, 2, 2});
  CHECK(repeated_units(4, 2, 3).from == std::vector<Index>{0, 1, 0, 1, 0, 1, 2, 3, 2, 3, 2, 3});
  UnitCopies both = repeated_units(2, 1, 2);
  append_units(both, kept_units(2), 2);
  CHECK(both.from == std::vector<Index>{0, 0, 1, 1, 2, 3});
}

TEST_CASE("shares of the copies of an element sum to 1, and differ only where they are drawn") {
  UnitCopies equal = repeated_units(4, 2, 3);
  share_equally(equal, 3);
  for (const double share : equal.share) CHECK(share == 1.0 / 3);
  UnitCopies drawn = repeated_units(40, 2, 3);
  share_unequally(drawn, 3, RandomStream(1, "x"));
  std::vector<double> sums(40, 0.0);
  for (std::size_t i = 0; i < drawn.from.size(); ++i) {
    CHECK(drawn.share[i] > 1.0 / 9);
    CHECK(drawn.share[i] < 1.0);
    CHECK(drawn.share[i] != 1.0 / 3);
    sums[static_cast<std::size_t>(drawn.from[i])] += drawn.share[i];
  }
  for (const double sum : sums) CHECK(sum == doctest::Approx(1).epsilon(1e-15));
  UnitCopies again = repeated_units(40, 2, 3);
  share_unequally(again, 3, RandomStream(1, "x"));
  CHECK(again.share == drawn.share);
}

}  // namespace masque::grow
