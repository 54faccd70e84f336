// Compiled with -ffp-contract=fast, as tile_multiply.cpp.
#include "nn/tile_gradients.hpp"

#include <cmath>
#include <type_traits>

#include "base/vectorize.hpp"
#include "nn/exp_vector.hpp"
#include "nn/vector.hpp"

namespace masque::nn::tile {

namespace {

template <class T>
using Vector = typename Vectors<T>::Aligned;

/// e^x of a vector; infinite only in double.
[[gnu::always_inline]] inline void exp_of(Vector<float>& x) { exp_vector<false>(x); }
[[gnu::always_inline]] inline void exp_of(Vector<double>& x) {
  for (int lane = 0; lane < static_cast<int>(kLanes<double>); ++lane) x[lane] = std::exp(x[lane]);
}

/// 1 / (1 + e^−x) without overflow.
[[gnu::always_inline]] inline void sigmoid_of(Vector<float>& x) {
  exp_of(x);
  x = x / (x + 1.0F);
}
[[gnu::always_inline]] inline void sigmoid_of(Vector<double>& x) {
  for (int lane = 0; lane < static_cast<int>(kLanes<double>); ++lane) {
    const double e = std::exp(x[lane] < 0 ? x[lane] : -x[lane]);
    x[lane] = (x[lane] < 0 ? e : 1) / (1 + e);
  }
}

template <ScoreMap kMap, class T>
[[gnu::always_inline]] inline void weights_row(T number, Index columns, T* row) {
  for (Index at = 0; at < columns; at += kLanes<T>) {
    Vector<T> x = vector_at(row + at);
    if constexpr (kMap == ScoreMap::kExp) {
      x = x - number;
      exp_of(x);
    } else if constexpr (kMap == ScoreMap::kSquaredRelu) {
      x = x < 0 ? Vector<T>{} : x;
      x = x * x / number;
    } else {
      sigmoid_of(x);
      x = x / number;
    }
    vector_at(row + at) = x;
  }
}

template <class T>
[[gnu::always_inline]] inline void weights_any(ScoreMap map, const T* numbers,
                                               const MatrixView<T>& x) {
  for (Index r = 0; r < x.rows; ++r) {
    switch (map) {
      case ScoreMap::kExp: weights_row<ScoreMap::kExp>(numbers[r], x.columns, x.row(r)); break;
      case ScoreMap::kSquaredRelu:
        weights_row<ScoreMap::kSquaredRelu>(numbers[r], x.columns, x.row(r));
        break;
      case ScoreMap::kSigmoid:
        weights_row<ScoreMap::kSigmoid>(numbers[r], x.columns, x.row(r));
        break;
    }
  }
}

MASQUE_VECTORIZE void weights_up(ScoreMap map, const float* numbers, const MatrixView<float>& x) {
  weights_any(map, numbers, x);
}
void weights_up(ScoreMap map, const double* numbers, const MatrixView<double>& x) {
  weights_any(map, numbers, x);
}

[[gnu::always_inline]] inline void root_of(Vector<float>& x) {
  for (int lane = 0; lane < static_cast<int>(kLanes<float>); ++lane) x[lane] = std::sqrt(x[lane]);
}
[[gnu::always_inline]] inline void root_of(Vector<double>& x) {
  for (int lane = 0; lane < static_cast<int>(kLanes<double>); ++lane) x[lane] = std::sqrt(x[lane]);
}

/// With a = f(x) / n the slope f′(x) / n is a for exp, 2 √(a / n) for squares, a (1 − n a) for the
/// sigmoid.
template <ScoreMap kMap, Divisor kDivisor, class T>
[[gnu::always_inline]] inline void gradient_row(const T* weights, const GradientRow<T>& row,
                                                Index columns, T* d) {
  for (Index at = 0; at < columns; at += kLanes<T>) {
    const Vector<T> a = vector_at(weights + at);
    Vector<T> g = vector_at(d + at);
    if constexpr (kDivisor == Divisor::kSum) g = g - row.along;
    if constexpr (kDivisor == Divisor::kRootSquares) g = g - a * row.along;
    Vector<T> slope = a;
    if constexpr (kMap == ScoreMap::kSquaredRelu) {
      slope = a / row.divisor;
      root_of(slope);
      slope = slope + slope;
    } else if constexpr (kMap == ScoreMap::kSigmoid) {
      slope = a * (static_cast<T>(1) - a * row.divisor);
    }
    g = g * (slope * row.temperature);
    // Also where the divisor of a row is infinite.
    vector_at(d + at) = a == 0 ? Vector<T>{} : g;
  }
}

template <ScoreMap kMap, class T>
[[gnu::always_inline]] inline void gradients_of(Divisor divisor, const MatrixView<const T>& weights,
                                                const GradientRow<T>* rows,
                                                const MatrixView<T>& d) {
  for (Index r = 0; r < d.rows; ++r) {
    const T* a = weights.row(r);
    switch (divisor) {
      case Divisor::kSum: gradient_row<kMap, Divisor::kSum>(a, rows[r], d.columns, d.row(r)); break;
      case Divisor::kRootSquares:
        gradient_row<kMap, Divisor::kRootSquares>(a, rows[r], d.columns, d.row(r));
        break;
      case Divisor::kConstant:
        gradient_row<kMap, Divisor::kConstant>(a, rows[r], d.columns, d.row(r));
        break;
    }
  }
}

template <class T>
[[gnu::always_inline]] inline void gradients_any(ScoreMap map, Divisor divisor,
                                                 const MatrixView<const T>& weights,
                                                 const GradientRow<T>* rows,
                                                 const MatrixView<T>& d) {
  switch (map) {
    case ScoreMap::kExp: return gradients_of<ScoreMap::kExp>(divisor, weights, rows, d);
    case ScoreMap::kSquaredRelu:
      return gradients_of<ScoreMap::kSquaredRelu>(divisor, weights, rows, d);
    case ScoreMap::kSigmoid: return gradients_of<ScoreMap::kSigmoid>(divisor, weights, rows, d);
  }
}

MASQUE_VECTORIZE void gradients_up(ScoreMap map, Divisor divisor,
                                   const MatrixView<const float>& weights,
                                   const GradientRow<float>* rows, const MatrixView<float>& d) {
  gradients_any(map, divisor, weights, rows, d);
}
MASQUE_VECTORIZE void gradients_up(ScoreMap map, Divisor divisor,
                                   const MatrixView<const double>& weights,
                                   const GradientRow<double>* rows, const MatrixView<double>& d) {
  gradients_any(map, divisor, weights, rows, d);
}

template <class T>
[[gnu::always_inline]] inline void elements_any(const T* x, const T* y, Index n, T* out) {
  for (Index i = 0; i < n; ++i) out[i] = x[i] * y[i];
}
MASQUE_VECTORIZE void elements_up(const float* x, const float* y, Index n, float* out) {
  elements_any(x, y, n, out);
}
MASQUE_VECTORIZE void elements_up(const double* x, const double* y, Index n, double* out) {
  elements_any(x, y, n, out);
}

MASQUE_VECTORIZE void add_scaled_up(const float* from, float factor, Index n, float* to) {
  for (Index i = 0; i < n; ++i) to[i] += factor * from[i];
}
MASQUE_VECTORIZE void add_scaled_up(const double* from, double factor, Index n, double* to) {
  for (Index i = 0; i < n; ++i) to[i] += factor * from[i];
}

template <class T>
[[gnu::always_inline]] inline void lane_products(const T* x, const T* y, Index n, T* lanes) {
  using Unaligned = typename Vectors<T>::Unaligned;
  Vector<T> sum{};
  Index at = 0;
  for (; at + kLanes<T> <= n; at += kLanes<T>) {
    const Vector<T> a = *reinterpret_cast<const Unaligned*>(x + at);
    const Vector<T> b = *reinterpret_cast<const Unaligned*>(y + at);
    sum += a * b;
  }
  vector_at(lanes) = sum;
  for (Index i = at; i < n; ++i) lanes[i - at] += x[i] * y[i];
}
MASQUE_VECTORIZE void lane_products_up(const float* x, const float* y, Index n, float* lanes) {
  lane_products(x, y, n, lanes);
}
MASQUE_VECTORIZE void lane_products_up(const double* x, const double* y, Index n, double* lanes) {
  lane_products(x, y, n, lanes);
}

}  // namespace

template <class T>
void weights_of_scores(ScoreMap map, std::span<const T> numbers, MatrixView<T> x) {
  weights_up(map, numbers.data(), x);
}

template <class T>
void score_gradients(ScoreMap map, Divisor divisor, MatrixView<const T> weights,
                     std::span<const GradientRow<T>> rows, MatrixView<T> d) {
  gradients_up(map, divisor, weights, rows.data(), d);
}

template <class T>
void multiply_elements(MatrixView<const T> x, MatrixView<const T> y, MatrixView<T> out) {
  for (Index r = 0; r < out.rows; ++r) elements_up(x.row(r), y.row(r), out.columns, out.row(r));
}

template <class T>
void add_scaled_rows(MatrixView<const T> from, std::span<const T> factors, MatrixView<T> to) {
  for (Index r = 0; r < to.rows; ++r) {
    add_scaled_up(from.row(r), factors[static_cast<std::size_t>(r)], to.columns, to.row(r));
  }
}

template <class T>
T inner_product(std::span<const T> x, std::span<const T> y) {
  alignas(64) T lanes[kLanes<T>];
  lane_products_up(x.data(), y.data(), static_cast<Index>(x.size()), lanes);
  return sum_lanes<T>(lanes);
}

template void score_gradients(ScoreMap, Divisor, MatrixView<const float>,
                              std::span<const GradientRow<float>>, MatrixView<float>);
template void score_gradients(ScoreMap, Divisor, MatrixView<const double>,
                              std::span<const GradientRow<double>>, MatrixView<double>);
#define MASQUE_INSTANTIATE(T)                                                               \
  template void weights_of_scores(ScoreMap, std::span<const T>, MatrixView<T>);             \
  template void multiply_elements(MatrixView<const T>, MatrixView<const T>, MatrixView<T>); \
  template void add_scaled_rows(MatrixView<const T>, std::span<const T>, MatrixView<T>);    \
  template T inner_product(std::span<const T>, std::span<const T>);
MASQUE_INSTANTIATE(float)
MASQUE_INSTANTIATE(double)
#undef MASQUE_INSTANTIATE

}  // namespace masque::nn::tile
