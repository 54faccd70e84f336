// Colours that can be distinguished, in colour and in grey, on light and dark pages.
#include "draw/palette.hpp"

#include <algorithm>
#include <cmath>

#include <doctest/doctest.h>

#include "draw/lightness.hpp"

namespace masque::draw {
namespace {

constexpr Theme kThemes[] = {Theme::kLight, Theme::kDark};

double of(int ink, Theme theme) { return lightness(color_of(static_cast<Ink>(ink), theme)); }

/// The least difference in lightness among `count` inks from `first` on.
double least_step(int first, int count, Theme theme) {
  std::vector<double> values;
  for (int i = 0; i < count; ++i) values.push_back(of(first + i, theme));
  std::sort(values.begin(), values.end());
  double least = 100;
  for (std::size_t i = 1; i < values.size(); ++i) {
    least = std::min(least, values[i] - values[i - 1]);
  }
  return least;
}

TEST_CASE("lightness is CIE L*") {
  CHECK(lightness({0, 0, 0}) == doctest::Approx(0));
  CHECK(lightness({255, 255, 255}) == doctest::Approx(100));
  CHECK(lightness({119, 119, 119}) == doctest::Approx(50.03).epsilon(0.001));
  CHECK(lightness({255, 0, 0}) == doctest::Approx(53.24).epsilon(0.001));
  CHECK(lightness({3, 3, 3}) == doctest::Approx(0.8225).epsilon(0.001));
}

TEST_CASE("classes and curves differ in lightness") {
  for (const Theme theme : kThemes) {
    CHECK(least_step(kInkClass, kFirstFree, theme) > 11);
    CHECK(least_step(kInkClass, kClasses, theme) > 5);
    CHECK(least_step(kInkCurve, kCurveInks, theme) > 9);
  }
}

TEST_CASE("blocked cells are nearest to the page, and still seen on it") {
  for (const Theme theme : kThemes) {
    const double page = of(kInkBackground, theme);
    const double blocked = std::abs(of(kInkClass + kBlocked, theme) - page);
    CHECK(blocked > 4);
    for (int i = 1; i < kClasses; ++i) CHECK(std::abs(of(kInkClass + i, theme) - page) > blocked);
  }
}

TEST_CASE("text can be read") {
  // The contrast ratio of WCAG from lightness: (Y + 0.05) / (Y' + 0.05).
  const auto luminance = [](double l) {
    return l > 8 ? std::pow((l + 16) / 116, 3) : l * 27 / 24389;
  };
  for (const Theme theme : kThemes) {
    for (const Ink ink : {kInkText, kInkQuiet}) {
      const double a = luminance(of(ink, theme)) + 0.05;
      const double b = luminance(of(kInkBackground, theme)) + 0.05;
      CHECK(std::max(a, b) / std::min(a, b) > 5.5);
    }
  }
}

TEST_CASE("heat only grows away from the page") {
  for (const Theme theme : kThemes) {
    const double sign = theme == Theme::kLight ? -1 : 1;
    for (int level = 1; level < kHeatLevels; ++level) {
      CHECK(sign * (of(kInkHeat + level, theme) - of(kInkHeat + level - 1, theme)) > 0);
    }
    const double range = std::abs(of(kInkHeat, theme) - of(kInkHeat + kHeatLevels - 1, theme));
    CHECK(range > 75);
    // As fast in the first half as in the second, roughly.
    const double half = std::abs(of(kInkHeat, theme) - of(kInkHeat + kHeatLevels / 2, theme));
    CHECK(half / range == doctest::Approx(0.5).epsilon(0.25));
  }
}

TEST_CASE("a cell without a value is page") {
  CHECK(ink_of(true, kNoValue) == kInkBackground);
  CHECK(ink_of(true, 3) == kInkHeat + 3);
  CHECK(ink_of(false, kOnlyA) == kInkClass + 3);
}

}  // namespace
}  // namespace masque::draw
