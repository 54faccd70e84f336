#include "nn/attention/tile_gradients.hpp"

#include <cmath>

#include "kernel/number/scalar.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "nn/attention/tile_gradients.cpp"
#include "base/processor/simd.hpp"
#include "kernel/number/group-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace masque::nn::tile {
namespace HWY_NAMESPACE {

namespace simd = kernel::HWY_NAMESPACE;
using simd::Group;
using simd::if_greater;
using simd::load_group;
using simd::mul_add;
using simd::set_group;
using simd::store_group;
using simd::zero_group;

/// Every element by a function of one number.
template <class Function>
HWY_INLINE Group<double> each_of(const Group<double>& x, const Function& f) {
  alignas(64) double parts[static_cast<std::size_t>(kLanes<double>)];
  store_group(x, parts);
  for (double& part : parts) part = f(part);
  return load_group(parts);
}

/// e^x of a group; infinite only in double.
HWY_INLINE Group<float> exp_of(const Group<float>& x) { return simd::exp_group<false>(x); }
HWY_INLINE Group<double> exp_of(const Group<double>& x) {
  return each_of(x, [](double a) { return std::exp(a); });
}

/// 1 / (1 + e^−x) without overflow.
HWY_INLINE Group<float> sigmoid_of(const Group<float>& x) { return simd::sigmoid_group(x); }
HWY_INLINE Group<double> sigmoid_of(const Group<double>& x) {
  return each_of(x, kernel::reference::sigmoid_of<double>);
}

template <ScoreMap kMap, class T>
HWY_INLINE void weights_row(T number, Index columns, T* row) {
  const auto n = set_group(number);
  const auto zero = zero_group<T>();
  for (Index at = 0; at < columns; at += kLanes<T>) {
    auto x = load_group(row + at);
    if constexpr (kMap == ScoreMap::kExp) {
      x = exp_of(x - n);
    } else if constexpr (kMap == ScoreMap::kSquaredRelu) {
      x = if_greater(zero, x, zero, x);
      x = x * x / n;
    } else {
      static_assert(kMap == ScoreMap::kSigmoid);
      x = sigmoid_of(x) / n;
    }
    store_group(x, row + at);
  }
}

template <class T>
HWY_INLINE void weights_any(ScoreMap map, const T* numbers, const MatrixView<T>& x) {
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

/// With a = f(x) / n the slope f′(x) / n is a for exp, 2 √(a / n) for squares, a (1 − n a) for the
/// sigmoid.
template <ScoreMap kMap, Divisor kDivisor, class T>
HWY_INLINE void gradient_row(const T* weights, const GradientRow<T>& row, Index columns, T* d) {
  const auto along = set_group(row.along);
  const auto divisor = set_group(row.divisor);
  const auto temperature = set_group(row.temperature);
  const auto zero = zero_group<T>();
  for (Index at = 0; at < columns; at += kLanes<T>) {
    const auto a = load_group(weights + at);
    auto g = load_group(d + at);
    if constexpr (kDivisor == Divisor::kSum) g = g - along;
    if constexpr (kDivisor == Divisor::kRootSquares) g = g - a * along;
    auto slope = a;
    if constexpr (kMap == ScoreMap::kSquaredRelu) {
      slope = simd::root(a / divisor);
      slope = slope + slope;
    } else if constexpr (kMap == ScoreMap::kSigmoid) {
      slope = a * (set_group(static_cast<T>(1)) - a * divisor);
    } else {
      static_assert(kMap == ScoreMap::kExp);
    }
    g = g * (slope * temperature);
    // Also where the divisor of a row is infinite.
    store_group(simd::if_equal(a, zero, zero, g), d + at);
  }
}

template <ScoreMap kMap, class T>
HWY_INLINE void gradients_of(Divisor divisor, const MatrixView<const T>& weights,
                             const GradientRow<T>* rows, const MatrixView<T>& d) {
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
HWY_INLINE void gradients_any(ScoreMap map, Divisor divisor, const MatrixView<const T>& weights,
                              const GradientRow<T>* rows, const MatrixView<T>& d) {
  switch (map) {
    case ScoreMap::kExp: return gradients_of<ScoreMap::kExp>(divisor, weights, rows, d);
    case ScoreMap::kSquaredRelu:
      return gradients_of<ScoreMap::kSquaredRelu>(divisor, weights, rows, d);
    case ScoreMap::kSigmoid: return gradients_of<ScoreMap::kSigmoid>(divisor, weights, rows, d);
  }
}

template <class T>
HWY_INLINE void add_scaled_any(const T* from, T factor, Index n, T* to) {
  const auto all = set_group(factor);
  Index i = 0;
  for (; i + kLanes<T> <= n; i += kLanes<T>) {
    store_group(mul_add(all, load_group(from + i), load_group(to + i)), to + i);
  }
  if (i == n) return;
  alignas(64) T rest[static_cast<std::size_t>(kLanes<T>)];
  store_group(mul_add(all, load_group(from + i, n - i), load_group(to + i, n - i)), rest);
  for (Index j = i; j < n; ++j) to[j] = rest[j - i];
}

template <class T>
HWY_INLINE T inner_any(const T* x, const T* y, Index n) {
  auto sum = zero_group<T>();
  Index at = 0;
  for (; at + kLanes<T> <= n; at += kLanes<T>) {
    sum = mul_add(load_group(x + at), load_group(y + at), sum);
  }
  if (at < n) sum = mul_add(load_group(x + at, n - at), load_group(y + at, n - at), sum);
  return simd::sum_of(sum);
}

void weights_floats(ScoreMap map, const float* numbers, const MatrixView<float>& x) {
  weights_any(map, numbers, x);
}
void weights_doubles(ScoreMap map, const double* numbers, const MatrixView<double>& x) {
  weights_any(map, numbers, x);
}
void gradients_floats(ScoreMap map, Divisor divisor, const MatrixView<const float>& weights,
                      const GradientRow<float>* rows, const MatrixView<float>& d) {
  gradients_any(map, divisor, weights, rows, d);
}
void gradients_doubles(ScoreMap map, Divisor divisor, const MatrixView<const double>& weights,
                       const GradientRow<double>* rows, const MatrixView<double>& d) {
  gradients_any(map, divisor, weights, rows, d);
}
void elements_floats(const float* x, const float* y, Index n, float* out) {
  for (Index i = 0; i < n; ++i) out[i] = x[i] * y[i];
}
void elements_doubles(const double* x, const double* y, Index n, double* out) {
  for (Index i = 0; i < n; ++i) out[i] = x[i] * y[i];
}
void add_scaled_floats(const float* from, float factor, Index n, float* to) {
  add_scaled_any(from, factor, n, to);
}
void add_scaled_doubles(const double* from, double factor, Index n, double* to) {
  add_scaled_any(from, factor, n, to);
}
float inner_floats(const float* x, const float* y, Index n) { return inner_any(x, y, n); }
double inner_doubles(const double* x, const double* y, Index n) { return inner_any(x, y, n); }

}  // namespace HWY_NAMESPACE
}  // namespace masque::nn::tile
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace masque::nn::tile {

namespace {

HWY_EXPORT(weights_floats);
HWY_EXPORT(weights_doubles);
HWY_EXPORT(gradients_floats);
HWY_EXPORT(gradients_doubles);
HWY_EXPORT(elements_floats);
HWY_EXPORT(elements_doubles);
HWY_EXPORT(add_scaled_floats);
HWY_EXPORT(add_scaled_doubles);
HWY_EXPORT(inner_floats);
HWY_EXPORT(inner_doubles);

}  // namespace

// NOLINTBEGIN(bugprone-macro-parentheses): T is a type
#define MASQUE_DEFINE(T, kind)                                                                   \
  template <>                                                                                    \
  void weights_of_scores(ScoreMap map, std::span<const T> numbers, MatrixView<T> x) {            \
    HWY_DYNAMIC_DISPATCH(weights_##kind)(map, numbers.data(), x);                                \
  }                                                                                              \
  template <>                                                                                    \
  void score_gradients(ScoreMap map, Divisor divisor, MatrixView<const T> weights,               \
                       std::span<const GradientRow<T>> rows, MatrixView<T> d) {                  \
    HWY_DYNAMIC_DISPATCH(gradients_##kind)(map, divisor, weights, rows.data(), d);               \
  }                                                                                              \
  template <>                                                                                    \
  void multiply_elements(MatrixView<const T> x, MatrixView<const T> y, MatrixView<T> out) {      \
    for (Index r = 0; r < out.rows; ++r) {                                                       \
      HWY_DYNAMIC_DISPATCH(elements_##kind)(x.row(r), y.row(r), out.columns, out.row(r));        \
    }                                                                                            \
  }                                                                                              \
  template <>                                                                                    \
  void add_scaled_rows(MatrixView<const T> from, std::span<const T> factors, MatrixView<T> to) { \
    for (Index r = 0; r < to.rows; ++r) {                                                        \
      const T factor = factors[static_cast<std::size_t>(r)];                                     \
      HWY_DYNAMIC_DISPATCH(add_scaled_##kind)(from.row(r), factor, to.columns, to.row(r));       \
    }                                                                                            \
  }                                                                                              \
  template <>                                                                                    \
  T inner_product(std::span<const T> x, std::span<const T> y) {                                  \
    return HWY_DYNAMIC_DISPATCH(inner_##kind)(x.data(), y.data(), static_cast<Index>(x.size())); \
  }
MASQUE_DEFINE(float, floats)
MASQUE_DEFINE(double, doubles)
#undef MASQUE_DEFINE
// NOLINTEND(bugprone-macro-parentheses)

}  // namespace masque::nn::tile
#endif
