// Summaries of a few numbers against values by hand and by the normal law.
#include "probe/statistics/bootstrap.hpp"

#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include <doctest/doctest.h>

#include "base/random.hpp"

namespace masque::test {
namespace {

using probe::summarise;
using probe::Summary;

TEST_CASE("mean, sample sd, least and largest") {
  const std::array<double, 4> values = {2, 4, 4, 10};
  const Summary s = summarise(values, {});
  CHECK(s.n == 4);
  CHECK(s.mean == 5);
  CHECK(s.sd == doctest::Approx(std::sqrt((9 + 1 + 1 + 25) / 3.0)).epsilon(1e-14));
  CHECK(s.min == 2);
  CHECK(s.max == 10);
}

TEST_CASE("one number has neither spread nor interval") {
  const std::array<double, 1> value = {3};
  const Summary s = summarise(value, {});
  CHECK(s.mean == 3);
  CHECK(std::isnan(s.sd));
  CHECK_FALSE(s.interval.has_value());
}

// Of 0 and 1 the replicates are 0, 1/2 and 1 with chances 1/4, 1/2 and 1/4.
TEST_CASE("two numbers: the whole distribution is known") {
  const std::array<double, 2> values = {0, 1};
  const Summary wide = summarise(values, {.level = 0.95});
  REQUIRE(wide.interval.has_value());
  CHECK(wide.interval->low == 0);
  CHECK(wide.interval->high == 1);
  const Summary narrow = summarise(values, {.level = 0.4});
  CHECK(narrow.interval->low == 0.5);
  CHECK(narrow.interval->high == 0.5);
}

// Three numbers: the mean is the least one with chance 1/27, so that the 2.5 % quantile is the
// least, and the 5 % quantile is the next mean, (2a + b) / 3.
TEST_CASE("three numbers, as many as seeds mostly are") {
  const std::array<double, 3> values = {1, 4, 16};
  const Summary s = summarise(values, {.level = 0.95});
  CHECK(s.interval->low == 1);
  CHECK(s.interval->high == 16);
  const Summary t = summarise(values, {.level = 0.9});
  CHECK(t.interval->low == 2);
  CHECK(t.interval->high == 12);
}

TEST_CASE("many numbers: the interval is that of the normal law") {
  constexpr std::size_t kCount = 400;
  std::vector<double> values(kCount);
  RandomStream(3, "bootstrap test").normal(0, kCount, values.data());
  for (const double level : {0.8, 0.95}) {
    const double z = level == 0.8 ? 1.2816 : 1.9600;
    const Summary s = summarise(values, {.level = level, .replicates = 20000});
    const double half = z * s.sd / std::sqrt(static_cast<double>(kCount));
    CHECK(std::abs(s.interval->low - (s.mean - half)) < 0.05 * half);
    CHECK(std::abs(s.interval->high - (s.mean + half)) < 0.05 * half);
  }
}

TEST_CASE("the same request gives the same interval, another seed another") {
  const std::array<double, 6> values = {0.3, 1.7, 2.9, 3.1, 4.4, 8.2};
  const Summary a = summarise(values, {.replicates = 500, .seed = 1});
  const Summary b = summarise(values, {.replicates = 500, .seed = 1});
  const Summary c = summarise(values, {.replicates = 500, .seed = 2});
  CHECK(a.interval->low == b.interval->low);
  CHECK(a.interval->high == b.interval->high);
  CHECK((a.interval->low != c.interval->low || a.interval->high != c.interval->high));
}

TEST_CASE("a run that diverged leaves no mean and no interval") {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const std::array<double, 3> diverged = {1, kInfinity, 2};
  const Summary s = summarise(diverged, {});
  CHECK(std::isnan(s.mean));
  CHECK(std::isnan(s.sd));
  CHECK(s.min == 1);
  CHECK(s.max == kInfinity);
  CHECK_FALSE(s.interval.has_value());
  const std::array<double, 2> broken = {std::nan(""), 2};
  const Summary t = summarise(broken, {});
  CHECK(std::isnan(t.min));
  CHECK(std::isnan(t.max));
  CHECK_FALSE(t.interval.has_value());
}

}  // namespace
}  // namespace masque::test
