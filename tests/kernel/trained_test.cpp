// What the products of training promise beyond their values.
#include <algorithm>
#include <array>
#include <cmath>

#include <doctest/doctest.h>

#include "kernel/activation.hpp"
#include "kernel/dropout.hpp"
#include "kernel/embedding.hpp"
#include "kernel/norm.hpp"
#include "kernel/product/trained_linear.hpp"
#include "support/near.hpp"
#include "support/random_matrix.hpp"

namespace masque::test {
namespace {

using kernel::Precision;
using kernel::TrainedLinear;

template <class T>
MatrixView<const T> view(const Matrix<T>& matrix) {
  return matrix.view();
}

struct Products {
  Products(Index rows, Index outputs, Index inputs)
      : y(rows, outputs),
        d_x(rows, inputs),
        d_weight(random_matrix(outputs, inputs, 7)),
        d_bias(random_matrix(1, outputs, 8)) {}
  Matrix<float> y, d_x, d_weight, d_bias;
};

/// Everything for some rows of x and d_y.
Products products(TrainedLinear<float>& linear, MatrixView<const float> weight,
                  MatrixView<const float> x, const Matrix<float>& bias, MatrixView<const float> d_y,
                  Precision precision) {
  Products p(x.rows, weight.rows, weight.columns);
  linear.pack(std::span(&weight, 1), precision);
  linear.forward(x, bias.span(), p.y.view());
  linear.backward(d_y, false, p.d_x.view());
  kernel::add_weight_gradient<float>(x, d_y, precision, p.d_weight.view(), p.d_bias.span());
  return p;
}

TEST_CASE("products of training: the same bits for any threads, and for rows alone") {
  for (const auto precision : {Precision::kF32, Precision::kBf16}) {
    for (const auto& sizes : std::vector<std::array<Index, 3>>{
             {200, 768, 130}, {1100, 70, 600}, {31, 1300, 1100}, {5, 3, 1}, {1, 1, 1}}) {
      const auto& rows = sizes[0];
      const auto& outputs = sizes[1];
      const auto& inputs = sizes[2];
      CAPTURE(rows);
      CAPTURE(outputs);
      CAPTURE(inputs);
      const Matrix<float> weight = random_matrix(outputs, inputs, 1);
      const Matrix<float> x = random_matrix(rows, inputs, 2), bias = random_matrix(1, outputs, 3);
      const Matrix<float> d_y = random_matrix(rows, outputs, 4);
      TrainedLinear<float> linear;
      const auto run = [&](int threads) {
        const Threads set(threads);
        return products(linear, weight.view(), x.view(), bias, d_y.view(), precision);
      };
      const Products one = run(1);
      for (const int threads : {2, 3}) {
        const Products more = run(threads);
        CHECK(same_bits(one.y, more.y));
        CHECK(same_bits(one.d_x, more.d_x));
        CHECK(same_bits(one.d_weight, more.d_weight));
        CHECK(same_bits(one.d_bias, more.d_bias));
      }
      for (const Index some : {Index{1}, rows / 2, rows}) {
        if (some == 0) continue;
        const Products part = products(linear, weight.view(), view(x).middle_rows(0, some), bias,
                                       view(d_y).middle_rows(0, some), precision);
        CHECK(std::equal(part.y.span().begin(), part.y.span().end(), one.y.data()));
        CHECK(std::equal(part.d_x.span().begin(), part.d_x.span().end(), one.d_x.data()));
      }
    }
  }
}

TEST_CASE("products of training: gaps, stacked weights, adding and packing again") {
  const Index rows = 40, outputs = 150, inputs = 70;
  for (const auto precision : {Precision::kF32, Precision::kBf16}) {
    const Matrix<float> weight = random_matrix(outputs, inputs, 1), bias(1, 0);
    const Matrix<float> x = random_matrix(rows, inputs, 2), d_y = random_matrix(rows, outputs, 4);
    TrainedLinear<float> linear;
    const Products whole = products(linear, weight.view(), x.view(), bias, d_y.view(), precision);
    // Another shape in between, then the same weights in three parts.
    const Matrix<float> other = random_matrix(9, 300, 5);
    linear.pack(std::vector{view(other)}, precision);
    CHECK(linear.inputs() == 300);
    linear.pack(std::vector{view(weight).middle_rows(0, 33), view(weight).middle_rows(33, 1),
                            view(weight).middle_rows(34, 116)},
                precision);
    CHECK(linear.outputs() == outputs);
    Matrix<float> wide = random_matrix(rows, inputs + 5, 6);
    for (Index i = 0; i < rows; ++i) {
      std::copy_n(view(x).row(i), inputs, wide.view().row(i) + 2);
    }
    Matrix<float> y(rows, outputs);
    linear.forward(view(wide).middle_columns(2, inputs), {}, y.view());
    CHECK(same_bits(y, whole.y));
    // Adding to what is there: near the sum, and nothing outside the view.
    const Matrix<float> before = random_matrix(rows, inputs + 5, 6);
    Matrix<float> d_x = random_matrix(rows, inputs + 5, 6);
    linear.backward(d_y.view(), true, d_x.view().middle_columns(2, inputs));
    std::vector<double> found, expected;
    for (Index i = 0; i < rows; ++i) {
      for (Index j = 0; j < inputs + 5; ++j) {
        const bool inside = j >= 2 && j < inputs + 2;
        found.push_back(static_cast<double>(view(d_x).at(i, j)));
        expected.push_back(static_cast<double>(view(before).at(i, j)) +
                           (inside ? static_cast<double>(view(whole.d_x).at(i, j - 2)) : 0.0));
      }
    }
    CHECK(far_off(found, expected, 1e-5, 1e-6) == "");
  }
}

TEST_CASE("a weight gradient of zero rows is nothing") {
  Matrix<float> d_weight = random_matrix(4, 3, 1), d_bias = random_matrix(1, 4, 2);
  kernel::add_weight_gradient<float>({nullptr, 0, 3}, {nullptr, 0, 4}, Precision::kF32,
                                     d_weight.view(), d_bias.span());
  CHECK(same_bits(d_weight, random_matrix(4, 3, 1)));
  CHECK(same_bits(d_bias, random_matrix(1, 4, 2)));
}

TEST_CASE("a weight gradient without inputs is that of the bias") {
  Matrix<float> weight(4, 1), d_bias = Matrix<float>::zero(1, 4);
  auto d_y = Matrix<float>::zero(2, 4);
  d_y.view().at(0, 3) = 1, d_y.view().at(1, 3) = 2;
  kernel::add_weight_gradient<float>(d_y.view().middle_columns(0, 0), d_y.view(), Precision::kF32,
                                     weight.view().middle_columns(0, 0), d_bias.span());
  CHECK(d_bias.view().at(0, 3) == 3);
}

/// The gradients of the small kernels, one after the other.
std::vector<float> small_gradients() {
  const Index rows = 700, columns = 130;
  const Matrix<float> x = random_matrix(rows, columns, 1), d_y = random_matrix(rows, columns, 2);
  const Matrix<float> weight = random_matrix(1, columns, 3);
  std::vector<TokenId> ids;
  for (Index i = 0; i < rows; ++i) ids.push_back(static_cast<TokenId>(i * i % 40));
  std::vector<float> all;
  const auto keep = [&](const Matrix<float>& m) {
    all.insert(all.end(), m.span().begin(), m.span().end());
  };
  auto d_x = Matrix<float>::zero(rows, columns), d_weight = Matrix<float>::zero(1, columns);
  auto d_bias = Matrix<float>::zero(1, columns), d_table = Matrix<float>::zero(40, columns);
  kernel::norm_backward<float>(kernel::Norm::kLayer, x.view(), weight.span(), 1e-5, d_y.view(),
                               d_x.view(), d_weight.span(), d_bias.span());
  kernel::activation_backward<float>(kernel::Activation::kGelu, x.view(), d_y.view(), d_x.view());
  kernel::embedding_backward<float, TokenId>(ids, d_y.view(), d_table.view());
  kernel::dropout_backward(0.3, RandomStream(1, "d"), 5, d_x.view());
  keep(d_x), keep(d_weight), keep(d_bias), keep(d_table);
  return all;
}

TEST_CASE("gradients of the small kernels: the same bits for any threads") {
  const auto run = [](int threads) {
    const Threads set(threads);
    return small_gradients();
  };
  const std::vector<float> one = run(1);
  CHECK(run(2) == one);
  CHECK(run(3) == one);
}

}  // namespace
}  // namespace masque::test
