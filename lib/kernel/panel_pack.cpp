#include "kernel/panel_pack.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "base/error.hpp"
#include "base/vectorize.hpp"
#include "kernel/bfloat16.hpp"

namespace masque::kernel::panel {
namespace {

using Vector __attribute__((vector_size(64), may_alias)) = float;
using Anywhere __attribute__((vector_size(64), may_alias, aligned(4))) = float;

/// out[j] = the pair of low[j] and high[j], rounded to nearest even.
MASQUE_VECTORIZE void pair_rows(const float* low, const float* high, Index n, float* out) {
  for (Index j = 0; j < n; ++j) {
    const std::uint32_t pair = (bf16_bits(low[j]) >> 16U) | (bf16_bits(high[j]) & 0xFFFF0000U);
    out[j] = std::bit_cast<float>(pair);
  }
}

/// The same with zeros as the second row.
MASQUE_VECTORIZE void pair_row(const float* low, Index n, float* out) {
  for (Index j = 0; j < n; ++j) out[j] = std::bit_cast<float>(bf16_bits(low[j]) >> 16U);
}

MASQUE_VECTORIZE void add_row(const float* x, Index n, float* sums) {
  for (Index j = 0; j < n; ++j) sums[j] += x[j];
}

/// Neighbours along the row become pairs.
void pair_along(const float* x, Index n, float* out) {
  to_bf16_row(x, n, reinterpret_cast<std::uint16_t*>(out));
  if (n % 2 != 0) {
    const std::uint32_t last = bf16_bits(x[n - 1]) >> 16U;
    std::memcpy(out + n / 2, &last, sizeof last);
  }
}

void row_as(Kind kind, const float* x, Index n, float* out) {
  switch (kind) {
    case Kind::kFloat: std::copy_n(x, n, out); break;
    case Kind::kRounded: round_row_to_bf16(x, n, out); break;
    case Kind::kPairs: pair_along(x, n, out); break;
  }
}

constexpr int kSide = static_cast<int>(kWidth);

/// One step of a transposition of 16 × 16: exchanges the blocks of kSize × kSize that are off the
/// diagonal.
template <int kSize, int... kLane>
[[gnu::always_inline]] inline void exchange(Vector* rows,
                                            std::integer_sequence<int, kLane...> /*lanes*/) {
#pragma GCC unroll 16
  for (int i = 0; i < kSide; ++i) {
    if ((i & kSize) != 0) continue;
    const Vector a = rows[i];
    const Vector b = rows[i + kSize];
    rows[i] =
        __builtin_shufflevector(a, b, ((kLane & kSize) != 0 ? kLane - kSize + kSide : kLane)...);
    rows[i + kSize] =
        __builtin_shufflevector(a, b, ((kLane & kSize) != 0 ? kLane + kSide : kLane + kSize)...);
  }
}

/// out(k, n) = rows[n][first + k] for 16 × 16; out has kColumns columns.
MASQUE_VECTORIZE void transpose_block(const float* const* rows, Index first, float* out) {
  constexpr std::make_integer_sequence<int, kSide> kAll;
  Vector block[kSide];
#pragma GCC unroll 16
  for (int i = 0; i < kSide; ++i) block[i] = *reinterpret_cast<const Anywhere*>(rows[i] + first);
  exchange<8>(block, kAll);
  exchange<4>(block, kAll);
  exchange<2>(block, kAll);
  exchange<1>(block, kAll);
#pragma GCC unroll 16
  for (int i = 0; i < kSide; ++i) *reinterpret_cast<Vector*>(out + i * kColumns) = block[i];
}

/// Spreads a row over tiles: tile t gets row[6 t … 6 t + 5] at out + t · stride. Stores
/// are 8 wide: what they write too much is overwritten by the next row or lies between tiles.
MASQUE_VECTORIZE void spread_row(const float* row, Index n, float* out, Index stride) {
  constexpr Index kStore = 8;
  Index r = 0;
  for (; r + kStore <= n; r += kRows, out += stride) {
    std::memcpy(out, row + r, kStore * sizeof(float));
  }
  for (; r < n; r += kRows, out += stride) {
    for (Index j = 0; j < std::min(kRows, n - r); ++j) out[j] = row[r + j];
  }
}

}  // namespace

Kind kind_of(Precision precision) {
  MASQUE_CHECK(precision != Precision::kF64);
  if (precision == Precision::kF32) return Kind::kFloat;
  return has_pairs() ? Kind::kPairs : Kind::kRounded;
}

void pack_panel(Kind kind, std::span<const float* const> rows, Index first, Index count,
                float* out) {
  const std::size_t step = kind == Kind::kPairs ? 2 : 1;
  for (std::size_t k = 0; k < rows.size(); k += step, out += kColumns) {
    if (kind == Kind::kPairs) {
      if (k + 1 < rows.size()) {
        pair_rows(rows[k] + first, rows[k + 1] + first, count, out);
      } else {
        pair_row(rows[k] + first, count, out);
      }
    } else {
      row_as(kind, rows[k] + first, count, out);
    }
    std::fill(out + count, out + kColumns, 0.0F);
  }
}

void pack_panel_transposed(Kind kind, std::span<const float* const> rows, Index depth, float* out) {
  thread_local Matrix<float> strip;  // 16 rows where they cannot be read in place
  const Index size = elements(kind, depth);
  const auto count = static_cast<Index>(rows.size());
  for (Index n = 0; n < kColumns; n += kWidth, out += kWidth) {
    const Index given = std::clamp<Index>(count - n, 0, kWidth);
    const float* from[kSide];
    if (kind == Kind::kFloat && given == kWidth) {
      std::copy_n(rows.begin() + n, kWidth, from);
    } else {
      strip.resize(kWidth, size);
      for (Index i = 0; i < kWidth; ++i) {
        float* row = strip.view().row(i);
        if (i < given) {
          row_as(kind, rows[static_cast<std::size_t>(n + i)], depth, row);
        } else {
          std::fill_n(row, size, 0.0F);
        }
        from[i] = row;
      }
    }
    Index k = 0;
    for (; k + kWidth <= size; k += kWidth) transpose_block(from, k, out + k * kColumns);
    for (; k < size; ++k) {
      for (Index i = 0; i < kWidth; ++i) out[k * kColumns + i] = from[i][k];
    }
  }
}

void pack_left_transposed(Kind kind, MatrixView<const float> x, float* out, float* sums) {
  const Index stride = tile_stride(kind, x.rows);
  thread_local Matrix<float> buffer;
  if (kind != Kind::kFloat) buffer.resize(1, x.columns);
  const Index step = kind == Kind::kPairs ? 2 : 1;
  for (Index k = 0; k < x.rows; k += step, out += kRows) {
    const float* row = x.row(k);
    const bool second = kind == Kind::kPairs && k + 1 < x.rows;
    if (sums != nullptr) {
      add_row(row, x.columns, sums);
      if (second) add_row(x.row(k + 1), x.columns, sums);
    }
    if (second) {
      pair_rows(row, x.row(k + 1), x.columns, buffer.data());
    } else if (kind == Kind::kPairs) {
      pair_row(row, x.columns, buffer.data());
    } else if (kind == Kind::kRounded) {
      round_row_to_bf16(row, x.columns, buffer.data());
    }
    spread_row(kind == Kind::kFloat ? row : buffer.data(), x.columns, out, stride);
  }
}

void pack_left(Kind kind, MatrixView<const float> x, float* out) {
  MASQUE_CHECK(kind != Kind::kFloat);
  const Index size = elements(kind, x.columns);
  for (Index i = 0; i < x.rows; ++i) row_as(kind, x.row(i), x.columns, out + i * size);
}

}  // namespace masque::kernel::panel
