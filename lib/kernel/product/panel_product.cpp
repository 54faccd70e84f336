#include "kernel/product/panel_product.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/divide.hpp"
#include "base/error.hpp"
#include "base/processor/vectorize.hpp"
#include "kernel/number/bfloat16.hpp"
#include "kernel/parallel.hpp"
#include "kernel/product/pack_strips.hpp"

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

/// Packs into `out`, as elements of `kind`, the operand whose row k is rows[k]: its columns `first`
/// … first + `count` − 1, count ≤ kColumns. `rows` has one pointer for each k.
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

/// Elements of `kind` from one tile of a left operand of this `depth` to the next. A line of the
/// cache is left between tiles: at a multiple of 4096 bytes all would share a set.
Index tile_stride(Kind kind, Index depth) {
  return kTileRows * elements(kind, depth) + kStripColumns<float>;
}

/// Packs into `out` a left operand from columns of `x`, as elements of `kind`: element (r,
/// k) is x(k, r), in tiles of kTileRows that are tile_stride(kind, x.rows) apart: `out`
/// has that many elements for each. Unless `sums` is nullptr, sums[r] += Σ_k x(k, r), in
/// the order of k, unrounded.
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

/// Elements of the left operand that stay in the second-level cache next to a panel.
constexpr Index kGroup = 98304;
/// Operations that are worth a thread.
constexpr double kWork = 1e6;

/// A part of the result.
struct Range {
  Index row, rows;
  Index panel, panels;
};

/// Cuts the result into a part for each thread, along its longer side: bits do not depend on it.
template <class Work>
void for_ranges(Index rows, const Right& right, const Work& work) {
  const Index tiles = divide_up(rows, kTileRows), panels = right.panels();
  const double depth = static_cast<double>(right.depth()) + 1;
  const auto grain = [&](Index height, Index width) {
    const double one = 2 * depth * static_cast<double>(height) * static_cast<double>(width);
    return static_cast<Index>(kWork / one) + 1;
  };
  if (tiles >= panels) {
    parallel_ranges(tiles, grain(kTileRows, right.columns()), [&](Index begin, Index end) {
      const Index row = begin * kTileRows;
      work(Range{row, std::min(end * kTileRows, rows) - row, 0, panels});
    });
  } else {
    parallel_ranges(panels, grain(rows, kColumns), [&](Index begin, Index end) {
      work(Range{0, rows, begin, end - begin});
    });
  }
}

/// A few rows times a few panels, for one part of the inner index. The bias is read with
/// Onto::kBias alone.
void multiply_group(const LeftOperand<float>& left, const Right& right, const Range& range,
                    Index element, Index count, Onto onto, std::span<const float> bias,
                    const MatrixView<float>& y) {
  for (Index p = range.panel; p < range.panel + range.panels; ++p) {
    const Index column = p * kColumns;
    const auto to = y.middle_rows(range.row, range.rows)
                        .middle_columns(column, std::min(kColumns, right.columns() - column));
    const float* const added = bias.empty() ? nullptr : bias.data() + column;
    const Strips<const float> from = right.packed().from_column(column).from_depth(element);
    if (right.kind() == Kind::kPairs) {
      multiply_packed_pairs(left, count, from, nullptr, to, onto, added);
    } else {
      multiply_packed(left, count, from, to, onto, added);
    }
  }
}

/// Calls work(rows of a group, first of the inner index, its count) for all groups of a range. An
/// inner index is cut at even places, so that pairs stay together.
template <class Work>
void for_groups(const Range& range, const Right& right, const Work& work) {
  const Index blocks = std::max<Index>(divide_up(elements(right.kind(), right.depth()), kDepth), 1);
  const Index block = round_up(divide_up(right.depth(), blocks), 2);
  const Index most =
      std::max(kGroup / std::max<Index>(std::min(kDepth, block), 1) / kTileRows, Index{1});
  const Index tiles = divide_up(range.rows, kTileRows),
              groups = std::max<Index>(divide_up(tiles, most), 1);
  const Index height = divide_up(tiles, groups) * kTileRows;
  for (Index r = 0; r < range.rows; r += height) {
    const Range group{range.row + r, std::min(height, range.rows - r), range.panel, range.panels};
    for (Index k = 0; k < right.depth(); k += block) {
      work(group, k, std::min(block, right.depth() - k));
    }
  }
}

Index first_element(Kind kind, Index k) { return kind == Kind::kPairs ? k / 2 : k; }

void check_result(const Right& right, Index rows, Index depth, const MatrixView<float>& y) {
  MASQUE_CHECK(depth > 0 && depth == right.depth());
  MASQUE_CHECK(rows == y.rows && right.columns() == y.columns);
}

}  // namespace

void Right::resize(Kind kind, Index depth, Index columns) {
  kind_ = kind, depth_ = depth, columns_ = columns;
  data_.resize(strips_of<float>(columns), elements(kind, depth) * kStripColumns<float>);
}

void Right::pack(Kind kind, std::span<const float* const> rows, Index columns) {
  resize(kind, static_cast<Index>(rows.size()), columns);
  // Parts of panels, so that there are enough for many threads: 64 rows each.
  constexpr Index kPart = 64;
  const Index parts = divide_up(depth_, kPart);
  parallel_ranges(parts * panels(), 8, [&](Index begin, Index end) {
    for (Index i = begin; i < end; ++i) {
      const Index p = i % panels(), k = i / panels() * kPart;
      const Index column = p * kColumns;
      const Strips<float> to = strips().from_column(column).from_depth(first_element(kind, k));
      pack_panel(kind,
                 rows.subspan(static_cast<std::size_t>(k),
                              static_cast<std::size_t>(std::min(kPart, depth_ - k))),
                 column, std::min(kColumns, columns - column), to);
    }
  });
}

void Right::pack_transposed(Kind kind, std::span<const float* const> rows, Index depth) {
  resize(kind, depth, static_cast<Index>(rows.size()));
  const Index grain = 65536 / (kColumns * std::max<Index>(depth, 1)) + 1;
  parallel_ranges(panels(), grain, [&](Index begin, Index end) {
    for (Index p = begin; p < end; ++p) {
      const Index first = p * kColumns;
      const auto some =
          rows.subspan(static_cast<std::size_t>(first),
                       static_cast<std::size_t>(std::min(kColumns, columns_ - first)));
      pack_panel_transposed(kind, some, depth, strips().from_column(first));
    }
  });
}

void multiply_right(MatrixView<const float> x, const Right& right, Onto onto,
                    std::span<const float> bias, MatrixView<float> y) {
  check_result(right, x.rows, x.columns, y);
  MASQUE_CHECK(onto != Onto::kChain);
  MASQUE_CHECK(onto != Onto::kBias || static_cast<Index>(bias.size()) == y.columns);
  if (y.empty()) return;
  const Kind kind = right.kind();
  for_ranges(x.rows, right, [&](const Range& range) {
    thread_local Matrix<float> packed;
    for_groups(range, right, [&](const Range& group, Index k, Index count) {
      const auto part = x.middle_rows(group.row, group.rows).middle_columns(k, count);
      auto left = LeftOperand<float>::rows(part);
      const Index size = elements(kind, count);
      if (kind != Kind::kFloat) {
        packed.resize(group.rows, size);
        pack_left(kind, part, packed.data());
        left = {packed.data(), size, 1};
      }
      multiply_group(left, right, group, first_element(kind, k), size, k > 0 ? Onto::kSum : onto,
                     bias, y);
    });
  });
}

void multiply_transposed(MatrixView<const float> x, const Right& right, MatrixView<float> y,
                         std::span<float> sums) {
  check_result(right, x.columns, x.rows, y);
  MASQUE_CHECK(sums.empty() || static_cast<Index>(sums.size()) == y.rows);
  if (y.empty()) return;
  const Kind kind = right.kind();
  for_ranges(y.rows, right, [&](const Range& range) {
    thread_local Matrix<float> packed;
    for_groups(range, right, [&](const Range& group, Index k, Index count) {
      const Index stride = tile_stride(kind, count);
      packed.resize(divide_up(group.rows, kTileRows), stride);
      const bool adds = !sums.empty() && range.panel == 0;
      pack_left_transposed(kind, x.middle_rows(k, count).middle_columns(group.row, group.rows),
                           packed.data(), adds ? sums.data() + group.row : nullptr);
      const Index size = elements(kind, count);
      multiply_group({packed.data(), 1, kTileRows, stride}, right, group, first_element(kind, k),
                     size, Onto::kSum, {}, y);
    });
  });
}

void list_rows(std::span<const MatrixView<const float>> parts, std::vector<const float*>& rows) {
  rows.clear();
  for (const auto& part : parts) {
    for (Index i = 0; i < part.rows; ++i) rows.push_back(part.row(i));
  }
}

Kind kind_of(Precision precision) {
  MASQUE_CHECK(precision != Precision::kF64);
  if (precision == Precision::kF32) return Kind::kFloat;
  return has_pairs() ? Kind::kPairs : Kind::kRounded;
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

void pack_left(Kind kind, MatrixView<const float> x, float* out) {
  MASQUE_CHECK(kind != Kind::kFloat);
  const Index size = elements(kind, x.columns);
  for (Index i = 0; i < x.rows; ++i) row_as(kind, x.row(i), x.columns, out + i * size);
}

}  // namespace masque::kernel::panel
