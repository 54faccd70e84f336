// Accuracy, F1 and Matthews' correlation: numbers of scikit-learn 1.9.1.
#include "evaluate/score/classification.hpp"

#include <doctest/doctest.h>

namespace masque::evaluate {
namespace {

Confusion confusion(Index labels, const std::vector<Index>& is, const std::vector<Index>& called) {
  Confusion out(labels);
  for (std::size_t i = 0; i < is.size(); ++i) out.add(is[i], called[i]);
  return out;
}

}  // namespace

TEST_CASE("two labels: F1 is that of the second") {
  const Confusion c = confusion(2, {0, 0, 1, 1, 1, 0, 1, 1}, {0, 1, 1, 1, 0, 0, 1, 0});
  CHECK(c.total() == 8);
  CHECK(c.accuracy() == doctest::Approx(0.625).epsilon(1e-14));
  CHECK(c.f1() == doctest::Approx(0.6666666666666666).epsilon(1e-14));
  CHECK(c.macro_f1() == doctest::Approx(0.619047619047619).epsilon(1e-14));
  CHECK(c.mcc() == doctest::Approx(0.2581988897471611).epsilon(1e-14));
}

TEST_CASE("more labels: macro F1, of those that occur") {
  const Confusion c = confusion(3, {0, 1, 2, 2, 1, 0, 2, 1, 1}, {0, 2, 2, 2, 1, 1, 2, 1, 0});
  CHECK(c.accuracy() == doctest::Approx(0.6666666666666666).epsilon(1e-14));
  CHECK(c.f1() == doctest::Approx(0.6428571428571428).epsilon(1e-14));
  CHECK(c.mcc() == doctest::Approx(0.5).epsilon(1e-14));
  const Confusion rare = confusion(4, {0, 1, 2, 2}, {0, 1, 2, 1});
  CHECK(rare.f1() == doctest::Approx(0.7777777777777777).epsilon(1e-14));
  CHECK(rare.mcc() == doctest::Approx(0.7).epsilon(1e-14));
}

TEST_CASE("one prediction for all") {
  const Confusion c = confusion(2, {0, 0, 1}, {0, 0, 0});
  CHECK(c.f1() == 0);
  CHECK(c.mcc() == 0);
}

}  // namespace masque::evaluate
