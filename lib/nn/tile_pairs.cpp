#include "nn/tile_pairs.hpp"

#include <algorithm>

#include "base/error.hpp"

// No plain loop becomes the instruction that multiplies pairs: it needs intrinsics.
#if defined(__x86_64__)
#include <immintrin.h>
#define MASQUE_PAIRS __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512bf16")))
#define MASQUE_PAIRS_INLINE MASQUE_PAIRS __attribute__((always_inline)) inline
#endif

namespace masque::nn::tile {

#if defined(__x86_64__)

namespace {

constexpr Index kWidth = static_cast<Index>(kLanes<float>);
constexpr Index kMaxRows = 13;  // with two vectors each they fill the 32 registers

/// The first `count` lanes.
MASQUE_PAIRS_INLINE __mmask16 first_lanes(Index count) {
  return static_cast<__mmask16>((1U << std::clamp<Index>(count, 0, kWidth)) - 1U);
}

MASQUE_PAIRS_INLINE __m512bh pairs_at(const float* x) {
  return reinterpret_cast<__m512bh>(_mm512_load_ps(x));
}

/// What a product does.
enum class Product {
  kScale,      ///< c = factors ⊙ (a · b)
  kAdd,        ///< c += a · b
  kAddTurned,  ///< c += aᵀ · b
};

/// `kRows` rows of `kVectors` vectors: the sums stay in registers.
template <int kRows, int kVectors, Product kProduct>
MASQUE_PAIRS_INLINE void multiply_tile(const float* a, Index a_stride, Index pairs, const float* b,
                                       const float* factors, float* c, Index c_stride) {
  constexpr bool kAdd = kProduct != Product::kScale;
  __m512 sums[std::size_t{kRows}][std::size_t{kVectors}];
#pragma GCC unroll 16
  for (Index r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
    for (Index v = 0; v < kVectors; ++v) {
      sums[r][v] = kAdd ? _mm512_load_ps(c + r * c_stride + v * kWidth) : _mm512_setzero_ps();
    }
  }
  for (Index k = 0; k < pairs; ++k) {
    __m512bh row[std::size_t{kVectors}];
#pragma GCC unroll 2
    for (Index v = 0; v < kVectors; ++v) row[v] = pairs_at(b + k * (2 * kWidth) + v * kWidth);
#pragma GCC unroll 16
    for (Index r = 0; r < kRows; ++r) {
      const float pair =
          kProduct == Product::kAddTurned ? a[k * a_stride + r] : a[r * a_stride + k];
      const auto x = reinterpret_cast<__m512bh>(_mm512_set1_ps(pair));
#pragma GCC unroll 2
      for (Index v = 0; v < kVectors; ++v) sums[r][v] = _mm512_dpbf16_ps(sums[r][v], x, row[v]);
    }
  }
#pragma GCC unroll 16
  for (Index r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
    for (Index v = 0; v < kVectors; ++v) {
      const __m512 sum = kAdd ? sums[r][v] : _mm512_mul_ps(sums[r][v], _mm512_set1_ps(factors[r]));
      _mm512_store_ps(c + r * c_stride + v * kWidth, sum);
    }
  }
}

template <int kVectors, Product kProduct>
MASQUE_PAIRS_INLINE void multiply_rows(Index rows, const float* a, Index a_stride, Index pairs,
                                       const float* b, const float* factors, float* c,
                                       Index c_stride) {
  switch (rows) {
#define MASQUE_CASE(n) \
  case n: multiply_tile<n, kVectors, kProduct>(a, a_stride, pairs, b, factors, c, c_stride); break;
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

template <Product kProduct>
MASQUE_PAIRS void multiply_any(const MatrixView<const float>& a, const Packed<const float>& b,
                               const float* factors, const MatrixView<float>& c) {
  const Index pairs = kProduct == Product::kAddTurned ? a.rows : a.columns;
  const float* panel = b.data;
  Index column = 0;
  for (; column + kWidth < c.columns; column += 2 * kWidth, panel += b.panel_stride) {
    multiply_rows<2, kProduct>(c.rows, a.data, a.stride, pairs, panel, factors, c.data + column,
                               c.stride);
  }
  if (column < c.columns) {
    multiply_rows<1, kProduct>(c.rows, a.data, a.stride, pairs, panel, factors, c.data + column,
                               c.stride);
  }
}

MASQUE_PAIRS void row_to_pairs(const float* x, Index columns, float* out) {
  constexpr Index kStep = 2 * kWidth;
  Index at = 0;
  for (; at + kStep <= columns; at += kStep) {
    const __m512 low = _mm512_loadu_ps(x + at);
    const __m512 high = _mm512_loadu_ps(x + at + kWidth);
    _mm512_storeu_ps(out + at / 2, reinterpret_cast<__m512>(_mm512_cvtne2ps_pbh(high, low)));
  }
  // Stores under a mask are slow.
  if (at == columns) return;
  const __m512 low = _mm512_maskz_loadu_ps(first_lanes(columns - at), x + at);
  const __m512 high = _mm512_maskz_loadu_ps(first_lanes(columns - at - kWidth), x + at + kWidth);
  const auto pairs = reinterpret_cast<__m512>(_mm512_cvtne2ps_pbh(high, low));
  _mm512_mask_storeu_ps(out + at / 2, first_lanes(pairs_of(columns - at)), pairs);
}

/// Lanes of a first row and of a second, in turn.
MASQUE_PAIRS_INLINE __m512i order_of_pairs() {
  alignas(64) std::uint16_t lanes[2 * kWidth];
  for (Index i = 0; i < 2 * kWidth; ++i) {
    lanes[i] = static_cast<std::uint16_t>(i / 2 + i % 2 * kWidth);
  }
  return _mm512_load_si512(lanes);
}

MASQUE_PAIRS void rows_to_pairs(const float* first, const float* second, Index columns,
                                float* out) {
  const __m512i order = order_of_pairs();
  for (Index at = 0; at < columns; at += kWidth) {
    const __m512 low = _mm512_load_ps(first + at);
    const __m512 high = second == nullptr ? _mm512_setzero_ps() : _mm512_load_ps(second + at);
    const auto rounded = reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(high, low));
    _mm512_store_si512(out + at, _mm512_permutexvar_epi16(order, rounded));
  }
}

/// A panel of up to kPanel columns: the pairs of two keys, columns behind the last 0.
MASQUE_PAIRS void pack_panel(const MatrixView<const float>& x, float* out) {
  const __m512i order = order_of_pairs();
  for (Index key = 0; key < x.rows; key += 2) {
    for (Index v = 0; v < 2; ++v) {
      const __mmask16 columns = first_lanes(x.columns - v * kWidth);
      const __mmask16 second_columns = key + 1 < x.rows ? columns : __mmask16{0};
      const float* at = x.row(key) + v * kWidth;
      const __m512 first = _mm512_maskz_loadu_ps(columns, at);
      const __m512 second = _mm512_maskz_loadu_ps(second_columns, at + x.stride);
      const auto rounded = reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(second, first));
      _mm512_store_si512(out + key * kWidth + v * kWidth, _mm512_permutexvar_epi16(order, rounded));
    }
  }
}

}  // namespace

bool has_pairs() {
  static const bool kHas =
      __builtin_cpu_supports("avx512f") != 0 && __builtin_cpu_supports("avx512bw") != 0 &&
      __builtin_cpu_supports("avx512vl") != 0 && __builtin_cpu_supports("avx512dq") != 0 &&
      __builtin_cpu_supports("avx512bf16") != 0;
  return kHas;
}

void to_pairs(MatrixView<const float> x, MatrixView<float> out) {
  for (Index r = 0; r < x.rows; ++r) row_to_pairs(x.row(r), x.columns, out.row(r));
}

void to_row_pairs(MatrixView<const float> x, MatrixView<float> out) {
  for (Index r = 0; r < x.rows; r += 2) {
    rows_to_pairs(x.row(r), r + 1 < x.rows ? x.row(r + 1) : nullptr, x.columns, out.row(r / 2));
  }
}

void pack_pairs(MatrixView<const float> x, Packed<float> out) {
  for (Index column = 0; column < x.columns; column += kPanel<float>) {
    pack_panel(x.middle_columns(column, std::min(kPanel<float>, x.columns - column)),
               out.data + column / kPanel<float> * out.panel_stride);
  }
}

void pack_pairs_transposed(MatrixView<const float> x, Packed<float> out) {
  thread_local Matrix<float> rows;
  rows.resize(std::min(x.rows, kPanel<float>), pairs_of(x.columns));
  for (Index key = 0; key < x.rows; key += kPanel<float>) {
    const Index count = std::min(kPanel<float>, x.rows - key);
    to_pairs(x.middle_rows(key, count), rows.view());
    pack_transposed<float>(rows.view().middle_rows(0, count),
                           {out.data + key / kPanel<float> * out.panel_stride, out.panel_stride});
  }
}

void multiply_pairs(MatrixView<const float> a, Packed<const float> b,
                    std::span<const float> factors, MatrixView<float> c) {
  for (Index r = 0; r < a.rows; r += kMaxRows) {
    const Index rows = std::min(kMaxRows, a.rows - r);
    multiply_any<Product::kScale>(a.middle_rows(r, rows), b, factors.data() + r,
                                  c.middle_rows(r, rows));
  }
}

void add_product_of_pairs(MatrixView<const float> a, Packed<const float> b, MatrixView<float> c) {
  for (Index r = 0; r < a.rows; r += kMaxRows) {
    const Index rows = std::min(kMaxRows, a.rows - r);
    multiply_any<Product::kAdd>(a.middle_rows(r, rows), b, nullptr, c.middle_rows(r, rows));
  }
}

void add_turned_product_of_pairs(MatrixView<const float> a, Packed<const float> b,
                                 MatrixView<float> c) {
  for (Index r = 0; r < a.columns; r += kMaxRows) {
    const Index rows = std::min(kMaxRows, a.columns - r);
    multiply_any<Product::kAddTurned>(a.middle_columns(r, rows), b, nullptr,
                                      c.middle_rows(r, rows));
  }
}

#else

bool has_pairs() { return false; }

// Not reached.
void to_pairs(MatrixView<const float> /*x*/, MatrixView<float> /*out*/) { MASQUE_CHECK(false); }
void to_row_pairs(MatrixView<const float> /*x*/, MatrixView<float> /*out*/) { MASQUE_CHECK(false); }
void pack_pairs(MatrixView<const float> /*x*/, Packed<float> /*out*/) { MASQUE_CHECK(false); }
void pack_pairs_transposed(MatrixView<const float> /*x*/, Packed<float> /*out*/) {
  MASQUE_CHECK(false);
}
void multiply_pairs(MatrixView<const float> /*a*/, Packed<const float> /*b*/,
                    std::span<const float> /*factors*/, MatrixView<float> /*c*/) {
  MASQUE_CHECK(false);
}
void add_product_of_pairs(MatrixView<const float> /*a*/, Packed<const float> /*b*/,
                          MatrixView<float> /*c*/) {
  MASQUE_CHECK(false);
}
void add_turned_product_of_pairs(MatrixView<const float> /*a*/, Packed<const float> /*b*/,
                                 MatrixView<float> /*c*/) {
  MASQUE_CHECK(false);
}

#endif

}  // namespace masque::nn::tile
