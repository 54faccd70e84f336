#include "evaluate/attention/attention_loops.hpp"

#include <algorithm>
#include <cmath>

#include "kernel/number/elementary.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "evaluate/attention/attention_loops.cpp"
#include "base/processor/simd.hpp"
#include "kernel/number/group-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace masque::evaluate {
namespace HWY_NAMESPACE {

namespace simd = kernel::HWY_NAMESPACE;
using Floats = simd::Group<float>;
using simd::if_greater;
using simd::load_group;
using simd::set_group;
using simd::store_group;
using simd::zero_group;
constexpr Index kWidth = simd::kGroup<float>;

/// Σ x; columns a multiple of kWidth, here and below.
HWY_INLINE float sum_of_columns(const float* x, Index columns) {
  Floats sum = zero_group<float>();
  for (Index j = 0; j < columns; j += kWidth) sum = sum + load_group(x + j);
  return simd::sum_of(sum);
}

/// Divides a row by its sum and returns that.
HWY_INLINE float normalize(float* row, Index columns) {
  const float total = sum_of_columns(row, columns);
  const bool good = total > 0 && std::isfinite(total);
  if (!good) {
    std::fill_n(row, columns, 0.0F);
    return 0;
  }
  for (Index j = 0; j < columns; ++j) row[j] = row[j] / total;
  return total;
}

void normalize_rows(const MatrixView<float>& map, float* mass) {
  for (Index i = 0; i < map.rows; ++i) mass[i] = normalize(map.row(i), map.columns);
}

/// to ← −p log p.
HWY_INLINE void entropy_terms(const float* p, Index columns, float* to) {
  for (Index j = 0; j < columns; ++j) to[j] = -p[j] * kernel::fast_log(p[j]);
}

HWY_INLINE Floats magnitude(const Floats& x) {
  const Floats zero = zero_group<float>();
  return if_greater(zero, x, zero - x, x);
}

/// to += x
HWY_INLINE void add_to(float* to, const Floats& x) { store_group(load_group(to) + x, to); }

void sum_rows_loop(MatrixView<const float> map, const ColumnFacts& columns, float threshold,
                   float* buffer, RowSums* rows, float* sums, float* counts) {
  const Index width = map.columns;
  std::fill_n(sums, width, 0.0F);
  std::fill_n(counts, width, 0.0F);
  const Floats zero = zero_group<float>();
  const Floats one = set_group(1.0F);
  const Floats least = set_group(threshold);
  for (Index i = 0; i < map.rows; ++i) {
    const float* row = map.row(i);
    const Floats position = set_group(static_cast<float>(i));
    entropy_terms(row, width, buffer);
    // Two passes over the row: all sums at once do not fit the registers of AVX2.
    Floats entropy = zero, largest = zero, squares = zero, spread = zero;
    for (Index j = 0; j < width; j += kWidth) {
      const Floats p = load_group(row + j);
      const Floats away = p - load_group(columns.uniform + j);
      entropy = entropy + load_group(buffer + j);
      largest = if_greater(p, largest, p, largest);
      squares = squares + p * p;
      spread = spread + away * away;
    }
    Floats distance = zero, offset = zero, special = zero, punctuation = zero;
    for (Index j = 0; j < width; j += kWidth) {
      const Floats p = load_group(row + j);
      const Floats step = load_group(columns.positions + j) - position;
      offset = offset + p * step;
      distance = distance + p * magnitude(step);
      special = special + p * load_group(columns.special + j);
      punctuation = punctuation + p * load_group(columns.punctuation + j);
    }
    for (Index j = 0; j < width; j += kWidth) {
      const Floats p = load_group(row + j);
      add_to(sums + j, p);
      add_to(counts + j, if_greater(p, least, one, zero));
    }
    rows[i] = {simd::sum_of(entropy), simd::largest_of(largest), simd::sum_of(squares),
               simd::sum_of(spread),  simd::sum_of(distance),    simd::sum_of(offset),
               simd::sum_of(special), simd::sum_of(punctuation)};
  }
}

void sum_spreads_loop(MatrixView<const float> map, const ColumnFacts& columns, const RowSums* rows,
                      const float* means, const float* mass, RowSpreads* spreads, float* squares) {
  std::fill_n(squares, map.columns, 0.0F);
  for (Index i = 0; i < map.rows; ++i) {
    if (mass[i] == 0) continue;
    const float* row = map.row(i);
    const Floats position = set_group(static_cast<float>(i));
    Floats distance = zero_group<float>(), offset = distance;
    for (Index j = 0; j < map.columns; j += kWidth) {
      const Floats p = load_group(row + j);
      const Floats step = load_group(columns.positions + j) - position;
      const Floats farther = magnitude(step) - set_group(rows[i].distance);
      const Floats right = step - set_group(rows[i].offset);
      distance = distance + p * farther * farther;
      offset = offset + p * right * right;
    }
    for (Index j = 0; j < map.columns; j += kWidth) {
      const Floats away = load_group(row + j) - load_group(means + j);
      add_to(squares + j, away * away);
    }
    spreads[i] = {simd::sum_of(distance), simd::sum_of(offset)};
  }
}

void mixture_entropies_loop(const float* const* rows, Index heads, Index columns, float* buffer,
                            float* out) {
  for (Index a = 0; a < heads; ++a) {
    for (Index b = a + 1; b < heads; ++b) {
      const float* x = rows[a];
      const float* y = rows[b];
      for (Index j = 0; j < columns; ++j) {
        const float m = 0.5F * (x[j] + y[j]);
        buffer[j] = -m * kernel::fast_log(m);
      }
      out[a * heads + b] = sum_of_columns(buffer, columns);
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace masque::evaluate
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace masque::evaluate {

namespace {

HWY_EXPORT(normalize_rows);

template <class T>
void load_any(MatrixView<const T> from, MatrixView<float> to, float* mass) {
  for (Index i = 0; i < from.rows; ++i) {
    float* row = to.row(i);
    const T* source = from.row(i);
    for (Index j = 0; j < from.columns; ++j) row[j] = static_cast<float>(source[j]);
    std::fill(row + from.columns, row + to.columns, 0.0F);
  }
  HWY_DYNAMIC_DISPATCH(normalize_rows)(to, mass);
}

HWY_EXPORT(sum_rows_loop);
HWY_EXPORT(sum_spreads_loop);
HWY_EXPORT(mixture_entropies_loop);

}  // namespace

void load_map(MatrixView<const float> from, MatrixView<float> to, float* mass) {
  load_any(from, to, mass);
}

void load_map(MatrixView<const double> from, MatrixView<float> to, float* mass) {
  load_any(from, to, mass);
}

void sum_rows(MatrixView<const float> map, const ColumnFacts& columns, float threshold,
              float* buffer, RowSums* rows, float* sums, float* counts) {
  HWY_DYNAMIC_DISPATCH(sum_rows_loop)(map, columns, threshold, buffer, rows, sums, counts);
}

void sum_spreads(MatrixView<const float> map, const ColumnFacts& columns, const RowSums* rows,
                 const float* means, const float* mass, RowSpreads* spreads, float* squares) {
  HWY_DYNAMIC_DISPATCH(sum_spreads_loop)(map, columns, rows, means, mass, spreads, squares);
}

void mixture_entropies(const float* const* rows, Index heads, Index columns, float* buffer,
                       float* out) {
  HWY_DYNAMIC_DISPATCH(mixture_entropies_loop)(rows, heads, columns, buffer, out);
}

}  // namespace masque::evaluate
#endif
