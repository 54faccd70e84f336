// The inner loops against plain ones, at every size around a vector and a panel.
#include "nn/attention/tile.hpp"

#include <cmath>
#include <limits>

#include <doctest/doctest.h>

#include "base/divide.hpp"
#include "nn/example.hpp"

namespace masque::test {
namespace {

using namespace nn::tile;

TEST_CASE_TEMPLATE("products with packed matrices", T, float, double) {
  for (const Index rows : {1, 2, 7, 13, 14, 29}) {
    for (const Index columns : {1, 7, 15, 16, 17, 32, 33, 50}) {
      for (const Index depth : {1, 5, 16, 33}) {
        CAPTURE(rows);
        CAPTURE(columns);
        CAPTURE(depth);
        const Matrix<T> a = random_matrix<T>(rows, depth, 1);
        const Matrix<T> keys = random_matrix<T>(columns, depth, 2);
        const Matrix<T> values = random_matrix<T>(depth, columns, 3);
        Matrix<T> packed(kernel::strips_of<T>(columns), depth * kLanes<T>);
        Matrix<T> c(rows, round_up(columns, kLanes<T>));
        const auto worst = [&](const auto& expected) {
          double most = 0;
          for (Index i = 0; i < rows; ++i) {
            for (Index j = 0; j < columns; ++j) {
              const double d = static_cast<double>(c.view().at(i, j)) - expected(i, j);
              most = std::max(most, std::abs(d));
            }
          }
          return most;
        };
        const auto by_keys = [&](Index i, Index j) {
          double sum = 0;
          for (Index k = 0; k < depth; ++k) {
            sum +=
                static_cast<double>(a.view().at(i, k)) * static_cast<double>(keys.view().at(j, k));
          }
          return sum;
        };
        const auto by_values = [&](Index i, Index j) {
          double sum = 0;
          for (Index k = 0; k < depth; ++k) {
            sum += static_cast<double>(a.view().at(i, k)) *
                   static_cast<double>(values.view().at(k, j));
          }
          return sum;
        };
        const double most = std::numeric_limits<T>::epsilon() * static_cast<double>(4 * depth);
        const Strips<const T> b{packed.data(), packed.columns()};
        pack_transposed<T>(keys.view(), {packed.data(), packed.columns()});
        multiply<T>(a.view(), b, c.view(), false);
        CHECK(worst(by_keys) <= most);
        pack<T>(values.view(), {packed.data(), packed.columns()});
        multiply<T>(a.view(), b, c.view(), true);
        CHECK(worst([&](Index i, Index j) { return by_keys(i, j) + by_values(i, j); }) <= 2 * most);
      }
    }
  }
}

TEST_CASE("exponentials within three units of the last place") {
  constexpr Index kCount = 1 << 16;
  Matrix<float> x(1, kCount);
  Matrix<float> shifted(1, kCount);
  for (Index i = 0; i < kCount; ++i) {
    const float at = -87.0F * static_cast<float>(i) / kCount;
    x.data()[i] = at + 40;
    shifted.data()[i] = at;
  }
  const Matrix<float> before = Matrix<float>::copy(x.view());
  const Matrix<float> before_shifted = Matrix<float>::copy(shifted.view());
  map_exp(x.view());
  std::vector<RowState<float>> states = {{-std::numeric_limits<float>::infinity()}};
  Matrix<float> sums = Matrix<float>::zero(1, kLanes<float>);
  map_exp_shifted<float>(shifted.view(), states, false, sums.view());
  double worst = 0;
  double sum = 0;
  for (Index i = 0; i < kCount; ++i) {
    const double exact = std::exp(double{before.data()[i]});
    const double exact_shifted = std::exp(double{before_shifted.data()[i]});
    // The argument times log2 e is rounded: |x| · 2⁻²⁴ besides the polynomial's own error.
    const double slack = 1 + std::abs(double{before.data()[i]});
    const double slack_shifted = 1 + std::abs(double{before_shifted.data()[i]});
    worst = std::max(worst, std::abs(double{x.data()[i]} / exact - 1) / slack);
    worst =
        std::max(worst, std::abs(double{shifted.data()[i]} / exact_shifted - 1) / slack_shifted);
    sum += exact_shifted;
  }
  CHECK(worst <= 3 * std::ldexp(1, -24));
  CHECK(states[0].largest == 0);
  CHECK(shifted.data()[0] == 1);
  CHECK(std::abs(double{sum_lanes(sums.data())} / sum - 1) < 1e-4);
}

TEST_CASE("sigmoids, from -infinity to where they are 1, with their sums") {
  constexpr Index kCount = 1 << 12;
  Matrix<float> x(1, kCount);
  Matrix<double> exact(1, kCount);
  for (Index i = 0; i < kCount; ++i) {
    x.data()[i] = 200 * (static_cast<float>(i) / kCount - 0.5F);
    exact.data()[i] = static_cast<double>(x.data()[i]);
  }
  x.data()[0] = -std::numeric_limits<float>::infinity();
  exact.data()[0] = -std::numeric_limits<double>::infinity();
  x.data()[kCount - 1] = 1000;
  exact.data()[kCount - 1] = 1000;
  const Matrix<double> at = Matrix<double>::copy(exact.view());
  Matrix<float> sums = Matrix<float>::zero(1, kLanes<float>);
  Matrix<double> squares = Matrix<double>::zero(1, kLanes<double>);
  map_sigmoid(x.view(), false, sums.view());
  map_sigmoid(exact.view(), true, squares.view());
  CHECK(x.data()[0] == 0);
  CHECK(exact.data()[0] == 0);
  CHECK(x.data()[kCount - 1] == 1);
  CHECK(exact.data()[kCount - 1] == 1);
  double sum = 0;
  double sum_of_squares = 0;
  for (Index i = 0; i < kCount; ++i) {
    const double expected = 1 / (1 + std::exp(-at.data()[i]));
    if (i == 0) continue;
    CHECK(std::abs(exact.data()[i] / expected - 1) <= 1e-15);
    // Below 2^-126 floats are 0.
    CHECK(std::abs(double{x.data()[i]} - expected) <=
          (4 + std::abs(at.data()[i])) * std::ldexp(expected, -23) + std::ldexp(1, -126));
    sum += expected;
    sum_of_squares += expected * expected;
  }
  CHECK(std::abs(double{sum_lanes(sums.data())} / sum - 1) < 1e-5);
  CHECK(std::abs(sum_lanes(squares.data()) / sum_of_squares - 1) < 1e-13);
}

TEST_CASE("hidden scores become 0, NaN stays, and a row without a score changes nothing") {
  const float none = -std::numeric_limits<float>::infinity();
  Matrix<float> x = Matrix<float>::zero(2, 32);
  x.view().at(0, 5) = NAN;
  hide(x.view().row(1), 16, 0);
  hide(x.view().row(1) + 16, 16, 0b100);
  for (Index j = 0; j < 32; ++j) CHECK(x.view().at(1, j) == (j == 18 ? 0 : none));
  hide(x.view().row(1) + 16, 16, 0);
  std::vector<RowState<float>> states = {{none}, {2.5F}};
  Matrix<float> sums = Matrix<float>::zero(2, kLanes<float>);
  map_exp_shifted<float>(x.view(), states, true, sums.view());
  CHECK(std::isnan(x.view().at(0, 5)));
  CHECK(std::isnan(sum_lanes(sums.view().row(0))));
  CHECK(states[1].largest == 2.5F);
  CHECK(states[1].factor == 1);
  CHECK(sum_lanes(sums.view().row(1)) == 0);
  for (const float a : x.view().row_span(1)) CHECK(a == 0);
}

}  // namespace
}  // namespace masque::test
