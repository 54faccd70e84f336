#include "probe/attention_loops.hpp"

#include <algorithm>
#include <cmath>

#include "base/vectorize.hpp"
#include "kernel/elementary.hpp"

namespace masque::probe {

namespace {

using kernel::kLanes;
using kernel::lane_sum;
using kernel::Lanes;

[[gnu::always_inline]] inline Lanes& at(float* x) { return *reinterpret_cast<Lanes*>(x); }
[[gnu::always_inline]] inline const Lanes& at(const float* x) {
  return *reinterpret_cast<const Lanes*>(x);
}

/// Divides a row by its sum and returns that.
[[gnu::always_inline]] inline float normalize(float* row, Index columns) {
  Lanes sum{};
  for (Index j = 0; j < columns; j += kLanes) sum += at(row + j);
  const float total = lane_sum(sum);
  const bool good = total > 0 && std::isfinite(total);
  if (!good) {
    std::fill_n(row, columns, 0.0F);
    return 0;
  }
  for (Index j = 0; j < columns; ++j) row[j] = row[j] / total;
  return total;
}

MASQUE_VECTORIZE void normalize_rows(const MatrixView<float>& map, float* mass) {
  for (Index i = 0; i < map.rows; ++i) mass[i] = normalize(map.row(i), map.columns);
}

template <class T>
void load_any(MatrixView<const T> from, MatrixView<float> to, float* mass) {
  for (Index i = 0; i < from.rows; ++i) {
    float* row = to.row(i);
    const T* source = from.row(i);
    for (Index j = 0; j < from.columns; ++j) row[j] = static_cast<float>(source[j]);
    std::fill(row + from.columns, row + to.columns, 0.0F);
  }
  normalize_rows(to, mass);
}

/// to ← −p log p.
[[gnu::always_inline]] inline void entropy_terms(const float* p, Index columns, float* to) {
  for (Index j = 0; j < columns; ++j) to[j] = -p[j] * kernel::fast_log(p[j]);
}

[[gnu::always_inline]] inline float sum_of(const float* x, Index columns) {
  Lanes sum{};
  for (Index j = 0; j < columns; j += kLanes) sum += at(x + j);
  return lane_sum(sum);
}

}  // namespace

void load_map(MatrixView<const float> from, MatrixView<float> to, float* mass) {
  load_any(from, to, mass);
}

void load_map(MatrixView<const double> from, MatrixView<float> to, float* mass) {
  load_any(from, to, mass);
}

MASQUE_VECTORIZE
void sum_rows(MatrixView<const float> map, const ColumnFacts& columns, float threshold,
              float* buffer, RowSums* rows, float* sums, float* counts) {
  const Index width = map.columns;
  std::fill_n(sums, width, 0.0F);
  std::fill_n(counts, width, 0.0F);
  for (Index i = 0; i < map.rows; ++i) {
    const float* row = map.row(i);
    const auto place = static_cast<float>(i);
    entropy_terms(row, width, buffer);
    Lanes entropy{}, largest{}, squares{}, spread{}, distance{}, offset{}, special{}, punctuation{};
    for (Index j = 0; j < width; j += kLanes) {
      const Lanes p = at(row + j);
      const Lanes away = p - at(columns.uniform + j);
      const Lanes step = at(columns.places + j) - place;
      entropy += at(buffer + j);
      largest = p > largest ? p : largest;
      squares += p * p;
      spread += away * away;
      offset += p * step;
      distance += p * (step < 0 ? -step : step);
      special += p * at(columns.special + j);
      punctuation += p * at(columns.punctuation + j);
      at(sums + j) += p;
      at(counts + j) += p > threshold ? Lanes{} + 1.0F : Lanes{};
    }
    float most[kLanes];
    at(most) = largest;
    rows[i] = {lane_sum(entropy),  *std::max_element(most, most + kLanes),
               lane_sum(squares),  lane_sum(spread),
               lane_sum(distance), lane_sum(offset),
               lane_sum(special),  lane_sum(punctuation)};
  }
}

MASQUE_VECTORIZE
void sum_spreads(MatrixView<const float> map, const ColumnFacts& columns, const RowSums* rows,
                 const float* means, const float* mass, RowSpreads* spreads, float* squares) {
  std::fill_n(squares, map.columns, 0.0F);
  for (Index i = 0; i < map.rows; ++i) {
    if (mass[i] == 0) continue;
    const float* row = map.row(i);
    const auto place = static_cast<float>(i);
    Lanes distance{}, offset{};
    for (Index j = 0; j < map.columns; j += kLanes) {
      const Lanes p = at(row + j);
      const Lanes away = p - at(means + j);
      const Lanes step = at(columns.places + j) - place;
      const Lanes farther = (step < 0 ? -step : step) - rows[i].distance;
      const Lanes right = step - rows[i].offset;
      distance += p * farther * farther;
      offset += p * right * right;
      at(squares + j) += away * away;
    }
    spreads[i] = {lane_sum(distance), lane_sum(offset)};
  }
}

MASQUE_VECTORIZE
void mixture_entropies(const float* const* rows, Index heads, Index columns, float* buffer,
                       float* out) {
  for (Index a = 0; a < heads; ++a) {
    for (Index b = a + 1; b < heads; ++b) {
      const float* x = rows[a];
      const float* y = rows[b];
      for (Index j = 0; j < columns; ++j) {
        const float m = 0.5F * (x[j] + y[j]);
        buffer[j] = -m * kernel::fast_log(m);
      }
      out[a * heads + b] = sum_of(buffer, columns);
    }
  }
}

}  // namespace masque::probe
