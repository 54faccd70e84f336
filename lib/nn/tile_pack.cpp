#include <algorithm>

#include "base/vectorize.hpp"
#include "nn/tile.hpp"
#include "nn/vector.hpp"

namespace masque::nn::tile {

namespace {

using FloatVector = Vectors<float>::Aligned;

constexpr int kWidth = 16;

/// Rows i and i + kSize of a step of the transposition of 16 × 16: lanes of the first of two rows,
/// and of the second.
template <int kSize>
struct UpperRow {
  constexpr int operator()(int lane) const {
    return (lane & kSize) != 0 ? lane - kSize + kWidth : lane;
  }
};
template <int kSize>
struct LowerRow {
  constexpr int operator()(int lane) const {
    return (lane & kSize) != 0 ? lane + kWidth : lane + kSize;
  }
};

/// One step: exchanges the blocks of kSize × kSize that are off the diagonal.
template <int kSize>
[[gnu::always_inline]] inline void exchange(FloatVector* rows) {
  constexpr std::make_index_sequence<kWidth> kAll;
#pragma GCC unroll 16
  for (int i = 0; i < kWidth; ++i) {
    if ((i & kSize) != 0) continue;
    const FloatVector a = rows[i];
    const FloatVector b = rows[i + kSize];
    shuffle<UpperRow<kSize>>(a, b, rows[i], kAll);
    shuffle<LowerRow<kSize>>(a, b, rows[i + kSize], kAll);
  }
}

/// 16 columns of up to 16 rows; the last row stands in for those behind it.
MASQUE_VECTORIZE void transpose_16(const MatrixView<const float>& x, Index column, float* out) {
  using Unaligned = Vectors<float>::Unaligned;
  FloatVector rows[kWidth];
#pragma GCC unroll 16
  for (Index i = 0; i < kWidth; ++i) {
    const float* from = x.row(std::min(i, x.rows - 1)) + column;
    rows[i] = *reinterpret_cast<const Unaligned*>(from);
  }
  exchange<8>(rows);
  exchange<4>(rows);
  exchange<2>(rows);
  exchange<1>(rows);
#pragma GCC unroll 16
  for (Index i = 0; i < kWidth; ++i) vector_at(out + i * kPanel<float>) = rows[i];
}

/// out(d, key) of a panel = x(key, d) for d in [first, x.columns).
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
  const Index whole = x.columns / kWidth * kWidth;
  for (Index key = 0; key < x.rows; key += kWidth) {
    const auto rows = x.middle_rows(key, std::min<Index>(kWidth, x.rows - key));
    for (Index d = 0; d < whole; d += kWidth) {
      transpose_16(rows, d, out + d * kPanel<float> + key);
    }
  }
  transpose_rest(x, whole, out);
}

/// Rows of kPanel columns, one after the other.
template <class T>
[[gnu::always_inline]] inline void copy_panel_any(const MatrixView<const T>& x, T* out) {
  using Unaligned = typename Vectors<T>::Unaligned;
  for (Index key = 0; key < x.rows; ++key) {
    const T* from = x.row(key);
    vector_at(out + key * kPanel<T>) = *reinterpret_cast<const Unaligned*>(from);
    vector_at(out + key * kPanel<T> + kLanes<T>) =
        *reinterpret_cast<const Unaligned*>(from + kLanes<T>);
  }
}

MASQUE_VECTORIZE void copy_panel(const MatrixView<const float>& x, float* out) {
  copy_panel_any(x, out);
}
MASQUE_VECTORIZE void copy_panel(const MatrixView<const double>& x, double* out) {
  copy_panel_any(x, out);
}

}  // namespace

template <class T>
void pack(MatrixView<const T> x, Packed<T> out) {
  for (Index column = 0; column < x.columns; column += kPanel<T>) {
    T* panel = out.data + column / kPanel<T> * out.panel_stride;
    const Index width = std::min(kPanel<T>, x.columns - column);
    if (width == kPanel<T>) {
      copy_panel(x.middle_columns(column, width), panel);
      continue;
    }
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
