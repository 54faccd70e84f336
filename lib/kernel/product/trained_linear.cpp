#include "kernel/product/trained_linear.hpp"

#include <algorithm>
#include <chrono>
#include <complex>
#include <vector>

#include "base/clock.hpp"
#include "base/divide.hpp"
#include "base/error.hpp"
#include "kernel/parallel.hpp"
#include "kernel/product/linear.hpp"
#include "kernel/product/linear_reference.hpp"
#include "kernel/product/panel_product.hpp"
#include "kernel/product/product_rows.hpp"
#include "tensor/matrix.hpp"

namespace masque::kernel {
namespace {

/// Rows whose part of both operands is packed at a time.
constexpr Index kGradientRows = 512;

template <class T>
void fill_rows(std::span<const T> bias, MatrixView<T> y) {
  for (Index i = 0; i < y.rows; ++i) {
    if (bias.empty()) {
      std::fill_n(y.row(i), y.columns, T(0));
    } else {
      std::copy_n(bias.data(), y.columns, y.row(i));
    }
  }
}

/// y += x W, rows in parallel.
template <class T>
void add_rows_product(MatrixView<const T> x, MatrixView<const T> weight, MatrixView<T> y) {
  constexpr Index kPanel = 16;
  parallel_ranges(divide_up(x.rows, kPanel), 1, [&](Index begin, Index end) {
    const Index first = begin * kPanel, count = std::min(end * kPanel, x.rows) - first;
    add_product(x.middle_rows(first, count), weight, y.middle_rows(first, count));
  });
}

}  // namespace

/// The reference: the weights as they are, and transposed to (in, out).
template <class T>
struct TrainedLinear<T>::State {
  // Both directions in any case: nobody saves memory in tests.
  void pack(std::span<const MatrixView<const T>> weights, Precision precision, Packed /*packed*/) {
    MASQUE_CHECK(precision == Precision::kF64);
    inputs = weights[0].columns, outputs = 0;
    for (const auto& part : weights) outputs += part.rows;
    plain.resize(outputs, inputs);
    transposed.resize(inputs, outputs);
    Index row = 0;
    for (const auto& part : weights) {
      MASQUE_CHECK(part.columns == inputs);
      for (Index i = 0; i < part.rows; ++i, ++row) {
        std::copy_n(part.row(i), inputs, plain.view().row(row));
        for (Index k = 0; k < inputs; ++k) transposed.view().at(k, row) = part.at(i, k);
      }
    }
  }
  void forward(MatrixView<const T> x, std::span<const T> bias, MatrixView<T> y) const {
    fill_rows(bias, y);
    add_rows_product(x, transposed.view(), y);
  }
  void backward(MatrixView<const T> d_y, bool add, MatrixView<T> d_x) const {
    if (!add) fill_rows<T>({}, d_x);
    add_rows_product(d_y, plain.view(), d_x);
  }

  Index inputs = 0;
  Index outputs = 0;
  Matrix<T> plain;
  Matrix<T> transposed;
};

template <>
struct TrainedLinear<float>::State {
  void pack(std::span<const MatrixView<const float>> weights, Precision precision, Packed packed) {
    for (const auto& part : weights) MASQUE_CHECK(part.columns == weights[0].columns);
    inputs = weights[0].columns;
    panel::list_rows(weights, rows);
    outputs = static_cast<Index>(rows.size());
    const panel::Kind kind = panel::kind_of(precision);
    if (packed != Packed::kBackward) ahead.pack_transposed(kind, rows, inputs);
    if (packed != Packed::kForward) back.pack(kind, rows, inputs);
  }
  void forward(MatrixView<const float> x, std::span<const float> bias, MatrixView<float> y) const {
    multiply_right(x, ahead, bias.empty() ? Onto::kNothing : Onto::kBias, bias, y);
  }
  void backward(MatrixView<const float> d_y, bool add, MatrixView<float> d_x) const {
    multiply_right(d_y, back, add ? Onto::kSum : Onto::kNothing, {}, d_x);
  }

  Index inputs = 0;
  Index outputs = 0;
  panel::Right ahead;
  panel::Right back;
  std::vector<const float*> rows;  // of the weights, while they are packed
};

template <class T>
TrainedLinear<T>::TrainedLinear() : state_(std::make_unique<State>()) {}
template <class T>
TrainedLinear<T>::~TrainedLinear() = default;
template <class T>
TrainedLinear<T>::TrainedLinear(TrainedLinear&&) noexcept = default;
template <class T>
TrainedLinear<T>& TrainedLinear<T>::operator=(TrainedLinear&&) noexcept = default;

template <class T>
void TrainedLinear<T>::pack(std::span<const MatrixView<const T>> weights, Precision precision,
                            Packed packed) {
  MASQUE_CHECK(!weights.empty());
  state_->pack(weights, precision, packed);
}

template <class T>
Index TrainedLinear<T>::inputs() const {
  return state_->inputs;
}

template <class T>
Index TrainedLinear<T>::outputs() const {
  return state_->outputs;
}

template <class T>
void TrainedLinear<T>::forward(MatrixView<const T> x, std::span<const T> bias,
                               MatrixView<T> y) const {
  MASQUE_CHECK(x.columns == inputs() && y.columns == outputs() && x.rows == y.rows);
  MASQUE_CHECK(bias.empty() || static_cast<Index>(bias.size()) == outputs());
  state_->forward(x, bias, y);
}

template <class T>
void TrainedLinear<T>::backward(MatrixView<const T> d_y, bool add, MatrixView<T> d_x) const {
  MASQUE_CHECK(d_y.columns == outputs() && d_x.columns == inputs() && d_y.rows == d_x.rows);
  state_->backward(d_y, add, d_x);
}

namespace {

template <class T>
void add_column_sums(MatrixView<const T> x, std::span<T> sums) {
  if (sums.empty()) return;
  parallel_ranges(x.columns, 64, [&](Index begin, Index end) {
    for (Index i = 0; i < x.rows; ++i) {
      const T* from = x.row(i);
      for (Index c = begin; c < end; ++c) sums[static_cast<std::size_t>(c)] += from[c];
    }
  });
}

}  // namespace

template <class T>
void add_weight_gradient(MatrixView<const T> x, MatrixView<const T> d_y, Precision precision,
                         MatrixView<T> d_weight, std::span<T> d_bias) {
  MASQUE_CHECK(x.rows == d_y.rows);
  MASQUE_CHECK(d_bias.empty() || static_cast<Index>(d_bias.size()) == d_y.columns);
  if (d_weight.empty()) return add_column_sums(d_y, d_bias);
  MASQUE_CHECK(d_weight.rows == d_y.columns && d_weight.columns == x.columns);
  if constexpr (std::is_same_v<T, float>) {
    thread_local panel::Right right;
    thread_local std::vector<const float*> rows;
    const Index blocks = divide_up(x.rows, kGradientRows);
    const Index block = blocks == 0 ? 1 : round_up(divide_up(x.rows, blocks), 2);
    for (Index r = 0; r < x.rows; r += block) {
      const Index count = std::min(block, x.rows - r);
      const MatrixView<const float> part = x.middle_rows(r, count);
      panel::list_rows(std::span(&part, 1), rows);
      right.pack(panel::kind_of(precision), rows, x.columns);
      panel::multiply_transposed(d_y.middle_rows(r, count), right, d_weight, d_bias);
    }
  } else {
    MASQUE_CHECK(precision == Precision::kF64);
    parallel_ranges(d_y.columns, 8, [&](Index begin, Index end) {
      const auto some = d_bias.empty() ? d_bias
                                       : d_bias.subspan(static_cast<std::size_t>(begin),
                                                        static_cast<std::size_t>(end - begin));
      reference::add_weight_gradient(x, d_y.middle_columns(begin, end - begin),
                                     d_weight.middle_rows(begin, end - begin), some);
    });
  }
}

#define MASQUE_INSTANTIATE(T)                                                               \
  template class TrainedLinear<T>;                                                          \
  template void add_weight_gradient<T>(MatrixView<const T>, MatrixView<const T>, Precision, \
                                       MatrixView<T>, std::span<T>);
MASQUE_INSTANTIATE(float)
MASQUE_INSTANTIATE(double)
MASQUE_INSTANTIATE(std::complex<double>)
#undef MASQUE_INSTANTIATE

double measure_product(Precision precision) {
  using Clock = std::chrono::steady_clock;
  constexpr Index kSize = 1024;
  constexpr double kSeconds = 0.1;
  const Matrix<float> x = Matrix<float>::zero(kSize, kSize);
  Matrix<float> y(kSize, kSize);
  TrainedLinear<float> weight;
  const MatrixView<const float> view = x.view();
  weight.pack({&view, 1}, precision);
  weight.forward(view, {}, y.view());
  double best = 1e9;
  const auto begin = Clock::now();
  do {
    const auto start = Clock::now();
    weight.forward(view, {}, y.view());
    best = std::min(best, seconds_since(start));
  } while (seconds_since(begin) < kSeconds);
  return 2.0 * kSize * kSize * kSize / best;
}

}  // namespace masque::kernel
