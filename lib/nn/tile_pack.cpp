#include <algorithm>

#include "base/vectorize.hpp"
#include "nn/tile.hpp"

namespace masque::nn::tile {

namespace {

using FloatVector __attribute__((vector_size(64), aligned(4), may_alias)) = float;
using FloatOrder __attribute__((vector_size(64))) = std::int32_t;

constexpr int kWidth = 16;

/// One step of the transposition of 16 × 16: exchanges blocks of `kSize` off the diagonal.
template <int kSize>
[[gnu::always_inline]] inline void exchange(FloatVector* rows) {
  FloatOrder low;
  FloatOrder high;
  for (int i = 0; i < kWidth; ++i) {
    const bool second = (i & kSize) != 0;
    low[i] = second ? i - kSize + kWidth : i;
    high[i] = second ? i + kWidth : i + kSize;
  }
#pragma GCC unroll 16
  for (int i = 0; i < kWidth; ++i) {
    if ((i & kSize) != 0) continue;
    const FloatVector a = rows[i];
    const FloatVector b = rows[i + kSize];
    rows[i] = __builtin_shuffle(a, b, low);
    rows[i + kSize] = __builtin_shuffle(a, b, high);
  }
}

/// out rows are `out_stride` apart.
MASQUE_VECTORIZE void transpose_16(const float* x, Index stride, float* out, Index out_stride) {
  FloatVector rows[kWidth];
#pragma GCC unroll 16
  for (int i = 0; i < kWidth; ++i) rows[i] = *reinterpret_cast<const FloatVector*>(x + i * stride);
  exchange<8>(rows);
  exchange<4>(rows);
  exchange<2>(rows);
  exchange<1>(rows);
#pragma GCC unroll 16
  for (int i = 0; i < kWidth; ++i) *reinterpret_cast<FloatVector*>(out + i * out_stride) = rows[i];
}

/// out(d, key) of a panel = x(key, d) for d in [first, x.columns); keys behind the last are 0.
template <class T>
void transpose_rest(MatrixView<const T> x, Index first, T* out) {
  for (Index d = first; d < x.columns; ++d) {
    for (Index key = 0; key < kPanel<T>; ++key) {
      out[d * kPanel<T> + key] = key < x.rows ? x.at(key, d) : T{};
    }
  }
}

void transpose_panel(MatrixView<const double> x, double* out) { transpose_rest(x, 0, out); }

void transpose_panel(MatrixView<const float> x, float* out) {
  const Index whole = x.rows == kPanel<float> ? x.columns / kWidth * kWidth : 0;
  for (Index d = 0; d < whole; d += kWidth) {
    for (Index key = 0; key < x.rows; key += kWidth) {
      transpose_16(x.row(key) + d, x.stride, out + d * kPanel<float> + key, kPanel<float>);
    }
  }
  transpose_rest(x, whole, out);
}

}  // namespace

template <class T>
void pack(MatrixView<const T> x, Packed<T> out) {
  for (Index column = 0; column < x.columns; column += kPanel<T>) {
    T* panel = out.data + column / kPanel<T> * out.panel_stride;
    const Index width = std::min(kPanel<T>, x.columns - column);
    for (Index key = 0; key < x.rows; ++key) {
      T* to = panel + key * kPanel<T>;
      std::copy_n(x.row(key) + column, width, to);
      std::fill(to + width, to + kPanel<T>, T{});
    }
  }
}

template <class T>
void pack_transposed(MatrixView<const T> x, Packed<T> out) {
  for (Index key = 0; key < x.rows; key += kPanel<T>) {
    transpose_panel(x.middle_rows(key, std::min(kPanel<T>, x.rows - key)),
                    out.data + key / kPanel<T> * out.panel_stride);
  }
}

template void pack(MatrixView<const float>, Packed<float>);
template void pack(MatrixView<const double>, Packed<double>);
template void pack_transposed(MatrixView<const float>, Packed<float>);
template void pack_transposed(MatrixView<const double>, Packed<double>);

}  // namespace masque::nn::tile
