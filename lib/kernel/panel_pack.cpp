#include "kernel/panel_pack.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/error.hpp"
#include "base/vectorize.hpp"
#include "kernel/bfloat16.hpp"
#include "kernel/pack_strips.hpp"

namespace masque::kernel::panel {
namespace {

/// out[j] = the pair of low[j] and high[j], rounded to nearest even.
void pair_rows(const float* low, const float* high, Index n, float* out) {
  for (Index j = 0; j < n; ++j) {
    const std::uint32_t pair = (bf16_bits(low[j]) >> 16U) | (bf16_bits(high[j]) & 0xFFFF0000U);
    out[j] = std::bit_cast<float>(pair);
  }
}

/// The same with zeros as the second row.
void pair_row(const float* low, Index n, float* out) {
  for (Index j = 0; j < n; ++j) out[j] = std::bit_cast<float>(bf16_bits(low[j]) >> 16U);
}

void add_row(const float* x, Index n, float* sums) {
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

/// Spreads a row over tiles: tile t gets row[6 t … 6 t + 5] at out + t · stride. Stores
/// are 8 wide: what they write too much is overwritten by the next row or lies between tiles.
void spread_row(const float* row, Index n, float* out, Index stride) {
  constexpr Index kStore = 8;
  Index r = 0;
  for (; r + kStore <= n; r += kTileRows, out += stride) {
    std::memcpy(out, row + r, kStore * sizeof(float));
  }
  for (; r < n; r += kTileRows, out += stride) {
    for (Index j = 0; j < std::min(kTileRows, n - r); ++j) out[j] = row[r + j];
  }
}

}  // namespace

Kind kind_of(Precision precision) {
  MASQUE_CHECK(precision != Precision::kF64);
  if (precision == Precision::kF32) return Kind::kFloat;
  return has_pairs() ? Kind::kPairs : Kind::kRounded;
}

void pack_panel(Kind kind, std::span<const float* const> rows, Index first, Index count,
                const Strips<float>& out) {
  if (kind == Kind::kFloat) return pack_rows<float>(rows, first, count, out);
  alignas(64) float made[kColumns];
  const float* const row = made;
  const std::size_t step = kind == Kind::kPairs ? 2 : 1;
  for (std::size_t k = 0; k < rows.size(); k += step) {
    if (kind == Kind::kRounded) {
      row_as(kind, rows[k] + first, count, made);
    } else if (k + 1 < rows.size()) {
      vectorized<pair_rows>(rows[k] + first, rows[k + 1] + first, count, made);
    } else {
      vectorized<pair_row>(rows[k] + first, count, made);
    }
    pack_rows<float>({&row, 1}, 0, count, out.from_depth(static_cast<Index>(k / step)));
  }
}

void pack_panel_transposed(Kind kind, std::span<const float* const> rows, Index depth,
                           const Strips<float>& out) {
  if (kind == Kind::kFloat) return pack_rows_transposed<float>(rows, depth, out);
  thread_local Matrix<float> made;
  const Index size = elements(kind, depth);
  made.resize(kColumns, size);
  const float* from[kColumns];
  for (std::size_t n = 0; n < rows.size(); ++n) {
    float* row = made.view().row(static_cast<Index>(n));
    row_as(kind, rows[n], depth, row);
    from[n] = row;
  }
  pack_rows_transposed<float>({from, rows.size()}, size, out);
}

void pack_left_transposed(Kind kind, MatrixView<const float> x, float* out, float* sums) {
  const Index stride = tile_stride(kind, x.rows);
  thread_local Matrix<float> buffer;
  if (kind != Kind::kFloat) buffer.resize(1, x.columns);
  const Index step = kind == Kind::kPairs ? 2 : 1;
  for (Index k = 0; k < x.rows; k += step, out += kTileRows) {
    const float* row = x.row(k);
    const bool second = kind == Kind::kPairs && k + 1 < x.rows;
    if (sums != nullptr) {
      vectorized<add_row>(row, x.columns, sums);
      if (second) vectorized<add_row>(x.row(k + 1), x.columns, sums);
    }
    if (second) {
      vectorized<pair_rows>(row, x.row(k + 1), x.columns, buffer.data());
    } else if (kind == Kind::kPairs) {
      vectorized<pair_row>(row, x.columns, buffer.data());
    } else if (kind == Kind::kRounded) {
      round_row_to_bf16(row, x.columns, buffer.data());
    }
    const float* from = kind == Kind::kFloat ? row : buffer.data();
    vectorized<spread_row>(from, x.columns, out, stride);
  }
}

void pack_left(Kind kind, MatrixView<const float> x, float* out) {
  MASQUE_CHECK(kind != Kind::kFloat);
  const Index size = elements(kind, x.columns);
  for (Index i = 0; i < x.rows; ++i) row_as(kind, x.row(i), x.columns, out + i * size);
}

}  // namespace masque::kernel::panel
