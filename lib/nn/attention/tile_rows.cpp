// The row loops of attention.
#include <algorithm>
#include <cmath>
#include <limits>

#include "kernel/number/scalar.hpp"
#include "nn/attention/tile.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "nn/attention/tile_rows.cpp"
#include "base/processor/simd.hpp"
#include "kernel/number/group-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace masque::nn::tile {
namespace HWY_NAMESPACE {

namespace simd = kernel::HWY_NAMESPACE;
using simd::Group;
using simd::if_greater;
using simd::load_group;
using simd::set_group;
using simd::store_group;
using simd::zero_group;

template <class T>
HWY_INLINE void hide_any(T* row, Index columns, std::uint64_t bits) {
  const auto hidden = set_group(-std::numeric_limits<T>::infinity());
  for (Index at = 0; at < columns; at += kLanes<T>, bits >>= kLanes<T>) {
    store_group(simd::if_bit(bits, load_group(row + at), hidden), row + at);
  }
}

/// The largest element of a row, at least `least`.
template <class T>
HWY_INLINE T largest_in(const T* row, Index columns, T least) {
  auto most = set_group(least);
  for (Index at = 0; at < columns; at += kLanes<T>) {
    const auto x = load_group(row + at);
    most = if_greater(x, most, x, most);
  }
  return simd::largest_of(most);
}

template <class T>
HWY_INLINE Group<T> sum_or_squares(const Group<T>& sum, const Group<T>& x, bool squares) {
  return squares ? simd::mul_add(x, x, sum) : sum + x;
}

template <bool kBounded>
HWY_INLINE void exp_row(float* row, Index columns, float shift, bool squares, float* sums) {
  auto sum = load_group(sums);
  const auto all = set_group(shift);
  for (Index at = 0; at < columns; at += kLanes<float>) {
    const auto x = simd::exp_group<kBounded>(load_group(row + at) - all);
    store_group(x, row + at);
    sum = sum_or_squares(sum, x, squares);
  }
  store_group(sum, sums);
}

template <bool kBounded>
HWY_INLINE void exp_row(double* row, Index columns, double shift, bool squares, double* sums) {
  for (Index at = 0; at < columns; ++at) {
    const double x = std::exp(row[at] - shift);
    row[at] = x;
    sums[at % kLanes<double>] += squares ? x * x : x;
  }
}

template <class T>
HWY_INLINE void exp_shifted_any(const MatrixView<T>& x, RowState<T>* states, bool squares,
                                const MatrixView<T>& sums) {
  constexpr T kNone = -std::numeric_limits<T>::infinity();
  for (Index r = 0; r < x.rows; ++r) {
    RowState<T>& state = states[r];
    const T before = state.largest;
    state.largest = largest_in<T>(x.row(r), x.columns, before);
    state.factor = 1;
    if (state.largest != before && before != kNone) {
      state.factor = std::exp(before - state.largest);
      const T factor = squares ? state.factor * state.factor : state.factor;
      store_group(load_group(sums.row(r)) * set_group(factor), sums.row(r));
    }
    const T shift = state.largest == kNone ? T{} : state.largest;
    exp_row<true>(x.row(r), x.columns, shift, squares, sums.row(r));
  }
}

template <class T>
HWY_INLINE void exp_any(const MatrixView<T>& x) {
  alignas(64) T ignored[static_cast<std::size_t>(kLanes<T>)] = {};
  for (Index r = 0; r < x.rows; ++r) exp_row<false>(x.row(r), x.columns, T{}, false, ignored);
}

/// Every group of the rows becomes map(group); `sums` get them, or their squares.
template <class T, class Map>
HWY_INLINE void map_any(const MatrixView<T>& rows, bool squares, const MatrixView<T>& sums,
                        const Map& map) {
  for (Index r = 0; r < rows.rows; ++r) {
    auto sum = load_group(sums.row(r));
    for (Index at = 0; at < rows.columns; at += kLanes<T>) {
      const auto x = map(load_group(rows.row(r) + at));
      store_group(x, rows.row(r) + at);
      sum = sum_or_squares(sum, x, squares);
    }
    store_group(sum, sums.row(r));
  }
}

template <class T>
HWY_INLINE void squared_relu_any(const MatrixView<T>& rows, bool squares,
                                 const MatrixView<T>& sums) {
  map_any(rows, squares, sums, [](const Group<T>& x) HWY_ATTR {
    const auto zero = zero_group<T>();
    const auto kept = if_greater(zero, x, zero, x);
    return kept * kept;
  });
}

void sigmoid_floats(const MatrixView<float>& rows, bool squares, const MatrixView<float>& sums) {
  map_any(rows, squares, sums,
          [](const Group<float>& x) HWY_ATTR { return simd::sigmoid_group(x); });
}

void hide_floats(float* row, Index columns, std::uint64_t bits) { hide_any(row, columns, bits); }
void hide_doubles(double* row, Index columns, std::uint64_t bits) { hide_any(row, columns, bits); }
void exp_shifted_floats(const MatrixView<float>& x, RowState<float>* states, bool squares,
                        const MatrixView<float>& sums) {
  exp_shifted_any(x, states, squares, sums);
}
void exp_shifted_doubles(const MatrixView<double>& x, RowState<double>* states, bool squares,
                         const MatrixView<double>& sums) {
  exp_shifted_any(x, states, squares, sums);
}
void exp_floats(const MatrixView<float>& x) { exp_any(x); }
void exp_doubles(const MatrixView<double>& x) { exp_any(x); }
void squared_relu_floats(const MatrixView<float>& x, bool squares, const MatrixView<float>& sums) {
  squared_relu_any(x, squares, sums);
}
void squared_relu_doubles(const MatrixView<double>& x, bool squares,
                          const MatrixView<double>& sums) {
  squared_relu_any(x, squares, sums);
}
float sum_floats(const float* lanes) { return simd::sum_of(load_group(lanes)); }
double sum_doubles(const double* lanes) { return simd::sum_of(load_group(lanes)); }
void multiply_floats(const float* from, Index count, float factor, float* to) {
  for (Index i = 0; i < count; ++i) to[i] = from[i] * factor;
}
void multiply_doubles(const double* from, Index count, double factor, double* to) {
  for (Index i = 0; i < count; ++i) to[i] = from[i] * factor;
}

}  // namespace HWY_NAMESPACE
}  // namespace masque::nn::tile
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace masque::nn::tile {

namespace {

HWY_EXPORT(hide_floats);
HWY_EXPORT(hide_doubles);
HWY_EXPORT(exp_shifted_floats);
HWY_EXPORT(exp_shifted_doubles);
HWY_EXPORT(exp_floats);
HWY_EXPORT(exp_doubles);
HWY_EXPORT(squared_relu_floats);
HWY_EXPORT(squared_relu_doubles);
HWY_EXPORT(sigmoid_floats);
HWY_EXPORT(sum_floats);
HWY_EXPORT(sum_doubles);
HWY_EXPORT(multiply_floats);
HWY_EXPORT(multiply_doubles);

}  // namespace

template <>
void hide(float* row, Index columns, std::uint64_t bits) {
  HWY_DYNAMIC_DISPATCH(hide_floats)(row, columns, bits);
}
template <>
void hide(double* row, Index columns, std::uint64_t bits) {
  HWY_DYNAMIC_DISPATCH(hide_doubles)(row, columns, bits);
}

template <>
void map_exp_shifted(MatrixView<float> x, std::span<RowState<float>> states, bool squares,
                     MatrixView<float> sums) {
  HWY_DYNAMIC_DISPATCH(exp_shifted_floats)(x, states.data(), squares, sums);
}
template <>
void map_exp_shifted(MatrixView<double> x, std::span<RowState<double>> states, bool squares,
                     MatrixView<double> sums) {
  HWY_DYNAMIC_DISPATCH(exp_shifted_doubles)(x, states.data(), squares, sums);
}

template <>
void map_exp(MatrixView<float> x) {
  HWY_DYNAMIC_DISPATCH(exp_floats)(x);
}
template <>
void map_exp(MatrixView<double> x) {
  HWY_DYNAMIC_DISPATCH(exp_doubles)(x);
}

template <>
void map_squared_relu(MatrixView<float> x, bool squares, MatrixView<float> sums) {
  HWY_DYNAMIC_DISPATCH(squared_relu_floats)(x, squares, sums);
}
template <>
void map_squared_relu(MatrixView<double> x, bool squares, MatrixView<double> sums) {
  HWY_DYNAMIC_DISPATCH(squared_relu_doubles)(x, squares, sums);
}

template <>
void map_sigmoid(MatrixView<float> x, bool squares, MatrixView<float> sums) {
  HWY_DYNAMIC_DISPATCH(sigmoid_floats)(x, squares, sums);
}
template <>
void map_sigmoid(MatrixView<double> x, bool squares, MatrixView<double> sums) {
  for (Index r = 0; r < x.rows; ++r) {
    for (Index j = 0; j < x.columns; ++j) {
      double& a = x.at(r, j);
      a = kernel::reference::sigmoid_of(a);
      sums.at(r, j % kLanes<double>) += squares ? a * a : a;
    }
  }
}

template <>
float sum_lanes(const float* lanes) {
  return HWY_DYNAMIC_DISPATCH(sum_floats)(lanes);
}
template <>
double sum_lanes(const double* lanes) {
  return HWY_DYNAMIC_DISPATCH(sum_doubles)(lanes);
}

template <>
void multiply_row(std::span<const float> from, float factor, float* to) {
  HWY_DYNAMIC_DISPATCH(multiply_floats)
  (from.data(), static_cast<Index>(from.size()), factor, to);
}
template <>
void multiply_row(std::span<const double> from, double factor, double* to) {
  HWY_DYNAMIC_DISPATCH(multiply_doubles)
  (from.data(), static_cast<Index>(from.size()), factor, to);
}

}  // namespace masque::nn::tile
#endif
