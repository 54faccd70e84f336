// Summaries of a few numbers against values by hand and those of R (t.test).
#include "evaluate/statistics/summary.hpp"

#include <array>
#include <cmath>
#include <limits>

#include <doctest/doctest.h>

namespace masque::test {
namespace {

using evaluate::summarise;
using evaluate::Summary;

TEST_CASE("mean, sample sd, least and largest") {
  const std::array<double, 4> values = {2, 4, 4, 10};
  const Summary s = summarise(values);
  CHECK(s.n == 4);
  CHECK(s.mean == 5);
  CHECK(s.sd == doctest::Approx(std::sqrt((9 + 1 + 1 + 25) / 3.0)).epsilon(1e-14));
  CHECK(s.min == 2);
  CHECK(s.max == 10);
}

TEST_CASE("one number has neither spread nor interval") {
  const std::array<double, 1> value = {3};
  const Summary s = summarise(value);
  CHECK(s.mean == 3);
  CHECK(std::isnan(s.sd));
  CHECK_FALSE(s.interval.has_value());
}

// t.test(c(0, 1)), t.test(c(1, 4, 16)) and t.test(x, conf.level = 0.8) of R 4.2.
TEST_CASE("the interval is Student's") {
  const auto near = [](double x, double y) { CHECK(x == doctest::Approx(y).epsilon(1e-12)); };
  const std::array<double, 2> two = {0, 1};
  REQUIRE(summarise(two).interval.has_value());
  near(summarise(two).interval->low, -5.8531023680873471);
  near(summarise(two).interval->high, 6.8531023680873471);
  const std::array<double, 3> three = {1, 4, 16};
  near(summarise(three).interval->low, -12.717231823185282);
  near(summarise(three).interval->high, 26.717231823185283);
  const std::array<double, 6> six = {0.3, 1.7, 2.9, 3.1, 4.4, 8.2};
  near(summarise(six, 0.8).interval->low, 1.7970902967704212);
  near(summarise(six, 0.8).interval->high, 5.0695763698962448);
}

TEST_CASE("equal numbers leave an interval of no length") {
  const std::array<double, 3> values = {0.5, 0.5, 0.5};
  CHECK(summarise(values).interval->low == 0.5);
  CHECK(summarise(values).interval->high == 0.5);
}

TEST_CASE("a run that diverged leaves no mean and no interval") {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const std::array<double, 3> diverged = {1, kInfinity, 2};
  const Summary s = summarise(diverged);
  CHECK(std::isnan(s.mean));
  CHECK(std::isnan(s.sd));
  CHECK(s.min == 1);
  CHECK(s.max == kInfinity);
  CHECK_FALSE(s.interval.has_value());
  const std::array<double, 2> broken = {std::nan(""), 2};
  const Summary t = summarise(broken);
  CHECK(std::isnan(t.min));
  CHECK(std::isnan(t.max));
  CHECK_FALSE(t.interval.has_value());
}

TEST_CASE("a mean over tokens has Student's interval over lines") {
  evaluate::RatioMean mean;
  mean.add(3, 1);
  CHECK_FALSE(mean.interval().has_value());
  mean.add(0, 0);  // no line
  for (const double x : {1, 4, 16}) mean.add(x, 1);
  evaluate::RatioMean equal;
  // Of lines of one token each it is that of the numbers.
  for (const double x : {1, 4, 16}) equal.add(x, 1);
  REQUIRE(equal.interval().has_value());
  CHECK(equal.interval()->low == doctest::Approx(-12.717231823185282).epsilon(1e-12));
  CHECK(equal.interval()->high == doctest::Approx(26.717231823185283).epsilon(1e-12));
  CHECK(mean.lines == 4);
}

}  // namespace
}  // namespace masque::test
