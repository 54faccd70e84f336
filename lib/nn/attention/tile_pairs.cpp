#include "nn/attention/tile_pairs.hpp"

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

/// The first `count` lanes.
MASQUE_PAIRS_INLINE __mmask16 first_lanes(Index count) {
  return static_cast<__mmask16>((1U << std::clamp<Index>(count, 0, kWidth)) - 1U);
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

/// A strip of up to kLanes columns: the pairs of two keys, columns after the last 0.
MASQUE_PAIRS void pack_strip(const MatrixView<const float>& x, float* out) {
  const __m512i order = order_of_pairs();
  const __mmask16 columns = first_lanes(x.columns);
  for (Index key = 0; key < x.rows; key += 2) {
    const __mmask16 second_columns = key + 1 < x.rows ? columns : __mmask16{0};
    const float* at = x.row(key);
    const __m512 first = _mm512_maskz_loadu_ps(columns, at);
    const __m512 second = _mm512_maskz_loadu_ps(second_columns, at + x.stride);
    const auto rounded = reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(second, first));
    _mm512_store_si512(out + key / 2 * kWidth, _mm512_permutexvar_epi16(order, rounded));
  }
}

}  // namespace

void to_pairs(MatrixView<const float> x, MatrixView<float> out) {
  for (Index r = 0; r < x.rows; ++r) row_to_pairs(x.row(r), x.columns, out.row(r));
}

void to_row_pairs(MatrixView<const float> x, MatrixView<float> out) {
  for (Index r = 0; r < x.rows; r += 2) {
    rows_to_pairs(x.row(r), r + 1 < x.rows ? x.row(r + 1) : nullptr, x.columns, out.row(r / 2));
  }
}

void pack_pairs(MatrixView<const float> x, Strips<float> out) {
  for (Index column = 0; column < x.columns; column += kWidth) {
    pack_strip(x.middle_columns(column, std::min(kWidth, x.columns - column)),
               out.from_column(column).data);
  }
}

void pack_pairs_transposed(MatrixView<const float> x, Strips<float> out) {
  // A few strips at a time.
  constexpr Index kRowsAtOnce = 4 * kWidth;
  thread_local Matrix<float> rows;
  rows.resize(std::min(x.rows, kRowsAtOnce), pairs_of(x.columns));
  for (Index key = 0; key < x.rows; key += kRowsAtOnce) {
    const Index count = std::min(kRowsAtOnce, x.rows - key);
    to_pairs(x.middle_rows(key, count), rows.view());
    pack_transposed<float>(rows.view().middle_rows(0, count), out.from_column(key));
  }
}

#else

// Not reached.
void to_pairs(MatrixView<const float> /*x*/, MatrixView<float> /*out*/) { MASQUE_CHECK(false); }
void to_row_pairs(MatrixView<const float> /*x*/, MatrixView<float> /*out*/) { MASQUE_CHECK(false); }
void pack_pairs(MatrixView<const float> /*x*/, Strips<float> /*out*/) { MASQUE_CHECK(false); }
void pack_pairs_transposed(MatrixView<const float> /*x*/, Strips<float> /*out*/) {
  MASQUE_CHECK(false);
}

#endif

}  // namespace masque::nn::tile
