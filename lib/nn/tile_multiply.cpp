// Compiled with -ffp-contract=fast: a · b + c on vectors is one instruction where there is one.
#include <algorithm>

#include "base/vectorize.hpp"
#include "nn/tile.hpp"
#include "nn/vector.hpp"

namespace masque::nn::tile {

namespace {

/// `kRows` rows of `kVectors` vectors: the sums stay in registers. kTurned: a is the transpose of
/// the left operand.
template <class T, bool kTurned, int kRows, int kVectors>
[[gnu::always_inline]] inline void multiply_tile(const T* a, Index a_stride, Index depth,
                                                 const T* b, T* c, Index c_stride, bool add) {
  using Vector = typename Vectors<T>::Aligned;
  constexpr Index kWidth = kLanes<T>;
  Vector sums[std::size_t{kRows}][std::size_t{kVectors}];
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) {
      sums[r][v] = add ? vector_at<T>(c + r * c_stride + v * kWidth) : Vector{};
    }
  }
  for (Index k = 0; k < depth; ++k) {
    Vector row[std::size_t{kVectors}];
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) {
      row[v] = vector_at(b + k * (2 * kWidth) + v * kWidth);
    }
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) {
      const T x = kTurned ? a[k * a_stride + r] : a[r * a_stride + k];
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) sums[r][v] += x * row[v];
    }
  }
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) {
      vector_at<T>(c + r * c_stride + v * kWidth) = sums[r][v];
    }
  }
}

constexpr Index kMaxRows = 13;

template <class T, bool kTurned, int kVectors>
[[gnu::always_inline]] inline void multiply_rows(Index rows, const T* a, Index a_stride,
                                                 Index depth, const T* b, T* c, Index c_stride,
                                                 bool add) {
  switch (rows) {
#define MASQUE_CASE(n) \
  case n: multiply_tile<T, kTurned, n, kVectors>(a, a_stride, depth, b, c, c_stride, add); break;
    MASQUE_CASE(1)
    MASQUE_CASE(2)
    MASQUE_CASE(3)
    MASQUE_CASE(4)
    MASQUE_CASE(5)
    MASQUE_CASE(6)
    MASQUE_CASE(7)
    MASQUE_CASE(8)
    MASQUE_CASE(9)
    MASQUE_CASE(10)
    MASQUE_CASE(11)
    MASQUE_CASE(12)
    MASQUE_CASE(13)
#undef MASQUE_CASE
    default: break;
  }
}

/// c has `rows` rows.
template <class T, bool kTurned>
[[gnu::always_inline]] inline void multiply_any(Index rows, Index depth,
                                                const MatrixView<const T>& a,
                                                const Packed<const T>& b, const MatrixView<T>& c,
                                                bool add) {
  constexpr Index kWidth = kLanes<T>;
  const T* panel = b.data;
  Index column = 0;
  for (; column + kWidth < c.columns; column += 2 * kWidth, panel += b.panel_stride) {
    multiply_rows<T, kTurned, 2>(rows, a.data, a.stride, depth, panel, c.data + column, c.stride,
                                 add);
  }
  if (column < c.columns) {
    multiply_rows<T, kTurned, 1>(rows, a.data, a.stride, depth, panel, c.data + column, c.stride,
                                 add);
  }
}

MASQUE_VECTORIZE void multiply_up(const MatrixView<const float>& a, const Packed<const float>& b,
                                  const MatrixView<float>& c, bool add) {
  multiply_any<float, false>(a.rows, a.columns, a, b, c, add);
}
MASQUE_VECTORIZE void multiply_up(const MatrixView<const double>& a, const Packed<const double>& b,
                                  const MatrixView<double>& c, bool add) {
  multiply_any<double, false>(a.rows, a.columns, a, b, c, add);
}
MASQUE_VECTORIZE void multiply_turned_up(const MatrixView<const float>& a,
                                         const Packed<const float>& b, const MatrixView<float>& c,
                                         bool add) {
  multiply_any<float, true>(a.columns, a.rows, a, b, c, add);
}
MASQUE_VECTORIZE void multiply_turned_up(const MatrixView<const double>& a,
                                         const Packed<const double>& b, const MatrixView<double>& c,
                                         bool add) {
  multiply_any<double, true>(a.columns, a.rows, a, b, c, add);
}

}  // namespace

Index best_rows() {
#if defined(__x86_64__)
  // 13 rows of two vectors fill the 32 registers of AVX-512; the 16 smaller ones hold 3.
  static const Index kRows = __builtin_cpu_supports("avx512f") ? kMaxRows : 3;
  return kRows;
#else
  return 4;
#endif
}

template <class T>
void multiply(MatrixView<const T> a, Packed<const T> b, MatrixView<T> c, bool add) {
  const Index step = kMaxRows;
  for (Index r = 0; r < a.rows; r += step) {
    const Index rows = std::min(step, a.rows - r);
    multiply_up(a.middle_rows(r, rows), b, c.middle_rows(r, rows), add);
  }
}

template <class T>
void add_turned_product(MatrixView<const T> a, Packed<const T> b, MatrixView<T> c) {
  for (Index r = 0; r < a.columns; r += kMaxRows) {
    const Index rows = std::min(kMaxRows, a.columns - r);
    multiply_turned_up(a.middle_columns(r, rows), b, c.middle_rows(r, rows), true);
  }
}

template void multiply(MatrixView<const float>, Packed<const float>, MatrixView<float>, bool);
template void multiply(MatrixView<const double>, Packed<const double>, MatrixView<double>, bool);
template void add_turned_product(MatrixView<const float>, Packed<const float>, MatrixView<float>);
template void add_turned_product(MatrixView<const double>, Packed<const double>,
                                 MatrixView<double>);

}  // namespace masque::nn::tile
