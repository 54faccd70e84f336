// Laws that hold whatever the numbers are.
#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include <doctest/doctest.h>

#include "base/random/random.hpp"
#include "kernel/activation.hpp"
#include "kernel/dropout.hpp"
#include "kernel/norm.hpp"
#include "kernel/parallel.hpp"
#include "kernel/rotary.hpp"
#include "kernel/rotary_reference.hpp"
#include "kernel/softmax/softmax.hpp"
#include "support/table.hpp"

namespace masque::test {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

double dot(const Matrix<double>& a, Index i, const Matrix<double>& b, Index j) {
  double sum = 0;
  for (Index k = 0; k < a.columns(); ++k) sum += a.view().at(i, k) * b.view().at(j, k);
  return sum;
}

/// The same random row in every row.
Matrix<double> repeated(Index rows, Index columns, std::uint64_t item) {
  Matrix<double> result(rows, columns);
  for (Index i = 0; i < rows; ++i) {
    RandomStream(2, "rotary", item)
        .normal(0, static_cast<std::size_t>(columns), result.view().row(i));
  }
  return result;
}

TEST_CASE_TEMPLATE("an activation gives the same in place and apart", T, float, double) {
  const Index rows = 3, columns = 37;
  Matrix<double> numbers(rows, columns), slopes(rows, columns);
  RandomStream(3, "x").normal(0, numbers.span().size(), numbers.span().data());
  RandomStream(3, "d").normal(0, slopes.span().size(), slopes.span().data());
  for (const std::string_view name :
       {"none", "gelu", "gelu_tanh", "relu", "squared_relu", "swish", "tanh", "sigmoid",
        "quick_gelu", "gelu_10", "mish", "leaky_relu", "relu6", "laplace", "hardswish",
        "sqrtsoftplus"}) {
    CAPTURE(name);
    const kernel::Activation f = *kernel::find_activation(name);
    Matrix<T> x(rows, columns), d_y(rows, columns), y(rows, columns);
    for (std::size_t i = 0; i < x.span().size(); ++i) {
      x.span()[i] = static_cast<T>(numbers.span()[i]);
      d_y.span()[i] = static_cast<T>(slopes.span()[i]);
    }
    const MatrixView<const T> in = std::as_const(x).view();
    kernel::activation_forward<T>(f, in, y.view());
    auto d_x = Matrix<T>::zero(rows, columns);
    kernel::activation_backward<T>(f, in, std::as_const(d_y).view(), d_x.view());
    kernel::activation_backward<T>(f, in, d_y.view());
    CHECK(std::ranges::equal(d_y.span(), d_x.span()));
    kernel::activation_forward<T>(f, x.view());
    CHECK(std::ranges::equal(x.span(), y.span()));
  }
}

TEST_CASE("rotary scores depend on the distance alone, and rotation keeps lengths") {
  for (const auto layout : {kernel::RotaryLayout::kAdjacent, kernel::RotaryLayout::kHalf}) {
    const Index n = 20, size = 16;
    std::vector<Index> positions;
    for (Index i = 0; i < n; ++i) positions.push_back(i * i);
    Matrix<double> query = repeated(n, size, 1), key = repeated(n, size, 2);
    const double length = dot(query, 0, query, 0);
    const auto frequencies = kernel::rotary_frequencies(10000, size);
    CHECK(frequencies[0] == 1);
    CHECK(frequencies[4] == doctest::Approx(0.01));
    kernel::rotary_forward(layout, kernel::rotary_table<double>(frequencies, positions), size,
                           query.view());
    kernel::rotary_forward(layout, kernel::rotary_table<double>(frequencies, positions), size,
                           key.view());
    std::vector<std::pair<Index, double>> by_distance;
    for (Index i = 0; i < n; ++i) {
      CHECK(dot(query, i, query, i) == doctest::Approx(length).epsilon(1e-12));
      for (Index j = 0; j < n; ++j) {
        by_distance.emplace_back(
            positions[static_cast<std::size_t>(i)] - positions[static_cast<std::size_t>(j)],
            dot(query, i, key, j));
      }
    }
    std::sort(by_distance.begin(), by_distance.end());
    int repeats = 0, different = 0;
    for (std::size_t i = 1; i < by_distance.size(); ++i) {
      const double change = std::fabs(by_distance[i].second - by_distance[i - 1].second);
      if (by_distance[i].first == by_distance[i - 1].first) {
        ++repeats;
        CHECK(change < 1e-12 * length);
      } else {
        different += change > 1e-3;
      }
    }
    CHECK(repeats > 20);
    CHECK(different > 100);
  }
}

TEST_CASE("rotary rotates the pairs of its layout by the angle of the position") {
  const std::vector<double> frequencies = {0.5, 0.25};
  const std::vector<Index> positions = {2};
  const auto rotated = [&](kernel::RotaryLayout layout) {
    Matrix<double> x(1, 5);
    for (Index j = 0; j < 5; ++j) x.data()[j] = j == 0 ? 1 : 0;
    x.data()[4] = 7;  // beyond the pairs
    kernel::rotary_forward(layout, kernel::rotary_table<double>(frequencies, positions), 5,
                           x.view());
    return std::vector<double>(x.span().begin(), x.span().end());
  };
  CHECK(rotated(kernel::RotaryLayout::kAdjacent) ==
        std::vector<double>{std::cos(1.0), std::sin(1.0), 0, 0, 7});
  CHECK(rotated(kernel::RotaryLayout::kHalf) ==
        std::vector<double>{std::cos(1.0), 0, std::sin(1.0), 0, 7});
}

/// Rotated by the definition, one head after the other.
Matrix<float> rotated_by_definition(kernel::RotaryLayout layout,
                                    const kernel::RotaryTable<float>& table, Index head_size,
                                    float direction, const Matrix<float>& x) {
  Matrix<float> result = Matrix<float>::copy(x.view());
  for (Index i = 0; i < x.rows(); ++i) {
    for (Index head = 0; head < x.columns(); head += head_size) {
      kernel::reference::rotate_head(layout, table.cosine.view().row(i), table.sine.view().row(i),
                                     table.cosine.columns(), direction,
                                     result.view().row(i) + head);
    }
  }
  return result;
}

TEST_CASE("rotary: the bits of the definition, for any pairs and threads") {
  const Index rows = 200, head_size = 80;
  std::vector<Index> positions(static_cast<std::size_t>(rows));
  for (Index i = 0; i < rows; ++i) positions[static_cast<std::size_t>(i)] = 5 * i;
  Matrix<float> x(rows, 3 * head_size);
  std::vector<double> values(x.span().size());
  RandomStream(4, "rotary").normal(0, values.size(), values.data());
  std::transform(values.begin(), values.end(), x.data(),
                 [](double value) { return static_cast<float>(value); });
  for (const auto layout : {kernel::RotaryLayout::kAdjacent, kernel::RotaryLayout::kHalf}) {
    for (const Index pairs : {0, 1, 3, 4, 7, 8, 15, 16, 17, 31, 32, 37, 40}) {
      CAPTURE(pairs);
      const auto table = kernel::rotary_table<float>(kernel::rotary_frequencies(10000, 2 * pairs),
                                                     positions, 1.25);
      const Matrix<float> forward = rotated_by_definition(layout, table, head_size, 1, x);
      const Matrix<float> backward = rotated_by_definition(layout, table, head_size, -1, x);
      for (const int threads : {1, 2, 3}) {
        kernel::set_threads(threads);
        Matrix<float> y = Matrix<float>::copy(x.view()), z = Matrix<float>::copy(x.view());
        kernel::rotary_forward<float>(layout, table, head_size, y.view());
        kernel::rotary_backward<float>(layout, table, head_size, z.view());
        kernel::set_threads(0);
        CHECK(std::equal(y.data(), y.data() + y.span().size(), forward.data()));
        CHECK(std::equal(z.data(), z.data() + z.span().size(), backward.data()));
      }
    }
  }
}

TEST_CASE("softmax: rows sum to one, hidden columns get nothing, rows that see nothing are zero") {
  const Index n = 150;
  Matrix<float> x(3, n);
  for (std::size_t i = 0; i < x.span().size(); ++i) {
    x.span()[i] = static_cast<float>(i * 7919 % 1000) / 100.0F;
  }
  std::vector<std::uint64_t> bits(9, 0xF0F0'0000'1234'5678ULL);
  std::fill_n(bits.begin() + 3, 3, 0);
  x.view().at(0, 0) = std::nanf("");  // bit 0 is not set: never read
  x.view().at(1, 5) = kInfinity;
  kernel::softmax_forward(x.view(), bits);
  for (Index i = 0; i < 3; ++i) {
    double sum = 0;
    for (Index j = 0; j < n; ++j) {
      const bool visible = i != 1 && ((bits[0] >> static_cast<unsigned>(j % 64)) & 1U);
      const float weight = x.view().at(i, j);
      CHECK((visible ? weight > 0 : weight == 0));
      sum += static_cast<double>(weight);
    }
    CHECK(sum == doctest::Approx(i == 1 ? 0 : 1).epsilon(1e-6));
  }
}

TEST_CASE("softmax: scores of −∞ weigh nothing, NaN is not hidden") {
  Matrix<float> x(3, 20);
  std::fill_n(x.data(), 60, 1.0F);
  x.view().at(0, 3) = -kInfinity;
  std::fill_n(x.view().row(1), 20, -kInfinity);
  x.view().at(2, 18) = std::nanf("");
  Matrix<double> same(3, 20);
  std::copy_n(x.data(), 60, same.data());
  kernel::softmax_forward(x.view());
  kernel::softmax_forward(same.view());
  for (Index j = 0; j < 20; ++j) {
    CHECK(x.view().at(0, j) == doctest::Approx(j == 3 ? 0.0 : 1.0 / 19));
    CHECK(x.view().at(1, j) == 0.0F);
    CHECK(same.view().at(1, j) == 0.0);
    CHECK(std::isnan(x.view().at(2, j)));
    CHECK(std::isnan(same.view().at(2, j)));
  }
}

TEST_CASE("layer norm: mean 0 and variance 1, and the sum of a residual is kept") {
  const Index n = 100;
  Matrix<float> x(2, n), residual(2, n), sum(2, n), y(2, n), again(2, n);
  for (Index j = 0; j < 2 * n; ++j) {
    x.data()[j] = static_cast<float>(j * 31 % 17);
    residual.data()[j] = static_cast<float>(j * 7 % 13);
  }
  kernel::residual_norm_forward<float>(kernel::Norm::kLayer, x.view(), residual.view(), {}, {},
                                       1e-12, sum.view(), y.view());
  for (Index i = 0; i < 2; ++i) {
    double mean = 0, square = 0;
    for (Index j = 0; j < n; ++j) {
      CHECK(sum.view().at(i, j) == x.view().at(i, j) + residual.view().at(i, j));
      mean += static_cast<double>(y.view().at(i, j)) / n;
      square += static_cast<double>(y.view().at(i, j) * y.view().at(i, j)) / n;
    }
    CHECK(std::fabs(mean) < 1e-6);
    CHECK(square == doctest::Approx(1).epsilon(1e-5));
  }
  // In place, and without the sum: the same bits.
  kernel::residual_norm_forward<float>(kernel::Norm::kLayer, x.view(), residual.view(), {}, {},
                                       1e-12, {}, residual.view());
  CHECK(std::equal(y.span().begin(), y.span().end(), residual.span().begin()));
}

TEST_CASE("dropout: the share that falls, the scale of the rest, and the place decides") {
  Matrix<float> x(100, 101);
  std::fill_n(x.data(), x.span().size(), 3.0F);
  const RandomStream stream(1, "dropout");
  kernel::dropout_forward(0.25, stream, 10, x.view());
  const std::set<float> values(x.span().begin(), x.span().end());
  CHECK(values == std::set<float>{0.0F, 4.0F});
  const auto fallen = std::count(x.span().begin(), x.span().end(), 0.0F);
  CHECK(std::fabs(static_cast<double>(fallen) / 10100 - 0.25) < 0.02);
  // What falls is said by the word of the place.
  for (std::uint64_t i = 0; i < 10100; ++i) {
    const bool falls = stream.block((10 + i) / 4)[(10 + i) % 4] < 0x40000000U;
    REQUIRE((x.span()[i] == 0) == falls);
  }
  // Row 7 alone, at its own place.
  Matrix<float> row(1, 101);
  std::fill_n(row.data(), 101, 3.0F);
  kernel::dropout_backward(0.25, stream, 10 + 7 * 101, row.view());
  CHECK(std::equal(row.span().begin(), row.span().end(), x.view().row(7)));
}

/// The value and slope of `f` at `x`, in T.
template <class T>
std::pair<double, double> activated_at(kernel::Activation f, double x) {
  Matrix<T> in(1, 1), slope(1, 1);
  *in.data() = static_cast<T>(x);
  *slope.data() = 1;
  kernel::activation_backward<T>(f, std::as_const(in).view(), slope.view());
  kernel::activation_forward<T>(f, in.view());
  return {static_cast<double>(*in.data()), static_cast<double>(*slope.data())};
}

TEST_CASE_TEMPLATE("activations have the values and slopes of transformers' ACT2FN", T, float,
                   double) {
  // gelu_fast has a rounded constant.
  const double tolerance = std::is_same_v<T, double> ? 1e-11 : 1e-6;
  std::set<std::string> names;
  for (const Row& row : read_table(MASQUE_TEST_DATA "/kernel/activations.tsv", 4)) {
    CAPTURE(row[0]);
    CAPTURE(row[1]);
    const auto f = kernel::find_activation(row[0]);
    REQUIRE(f.has_value());
    const double wanted = std::stod(row[2]), wanted_slope = std::stod(row[3]);
    const auto [value, slope] = activated_at<T>(*f, std::stod(row[1]));
    CHECK(std::fabs(value - wanted) <= tolerance * std::max(1.0, std::fabs(wanted)));
    CHECK(std::fabs(slope - wanted_slope) <= tolerance * std::max(1.0, std::fabs(wanted_slope)));
    names.insert(row[0]);
  }
  CHECK(names.size() == 22);
}

TEST_CASE("activations have the names of config.json") {
  using kernel::Activation;
  CHECK(kernel::find_activation("gelu") == Activation::kGelu);
  CHECK(kernel::find_activation("gelu_new") == Activation::kGeluTanh);
  CHECK(kernel::find_activation("gelu_pytorch_tanh") == Activation::kGeluTanh);
  CHECK(kernel::find_activation("silu") == Activation::kSwish);
  CHECK(kernel::find_activation("relu2") == Activation::kSquaredRelu);
  CHECK(kernel::find_activation("gelu_10") == Activation::kClippedGelu);
  CHECK(!kernel::find_activation("prelu"));
  CHECK(!kernel::find_activation("xielu"));
}

}  // namespace
}  // namespace masque::test
