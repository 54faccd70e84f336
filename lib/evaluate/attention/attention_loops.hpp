// The inner loops of statistics of attention maps: rows of floats, padded with zeros to whole
// lanes.
#pragma once

#include "base/divide.hpp"
#include "kernel/number/lanes.hpp"
#include "tensor/matrix.hpp"

namespace masque::evaluate {

/// Columns of a padded map of `n` keys: the next multiple of the lanes.
constexpr Index padded(Index n) { return round_up(n, kernel::kLanes); }

/// What columns are, padded with zeros. Borrowed.
struct ColumnFacts {
  const float* positions = nullptr;    ///< 0, 1, …; any number in the padding
  const float* uniform = nullptr;      ///< 1/n
  const float* special = nullptr;      ///< 1 or 0
  const float* punctuation = nullptr;  ///< 1 or 0
};

/// Sums over the columns j of a row i that sums to 1.
struct RowSums {
  float entropy = 0;      ///< −Σ p log p
  float largest = 0;      ///< max p
  float squares = 0;      ///< Σ p²
  float spread = 0;       ///< Σ (p − 1/n)²
  float distance = 0;     ///< Σ p |j − i|
  float offset = 0;       ///< Σ p (j − i)
  float special = 0;      ///< Σ p over special tokens
  float punctuation = 0;  ///< Σ p over punctuation
};

/// `to` (rows, padded n) ← rows of `from` (rows, n) divided by their sums; `mass` (rows) ← the
/// sums. Where a sum is not a positive number both are 0: such rows are left out of everything.
void load_map(MatrixView<const float> from, MatrixView<float> to, float* mass);
/// The same of a map `from` of double, rounded to float first: fills `to` and `mass`.
void load_map(MatrixView<const double> from, MatrixView<float> to, float* mass);

/// Fills `rows` (one each) from `map` as load_map leaves it, with what its `columns` are. Per
/// column (padded n of them): `sums` ← Σ p, `counts` ← rows with p > `threshold`. `buffer` has
/// padded n floats.
void sum_rows(MatrixView<const float> map, const ColumnFacts& columns, float threshold,
              float* buffer, RowSums* rows, float* sums, float* counts);

/// Σ over a row of p (|j − i| − distance)² and of p (j − i − offset)².
struct RowSpreads {
  float distance = 0;  ///< Σ p (|j − i| − distance)²
  float offset = 0;    ///< Σ p (j − i − offset)²
};

/// Fills `spreads` (one a row) from `map` with what its `columns` are, and the distances and
/// offsets in `rows`; per column `squares` ← Σ (p − `means`)² over rows with `mass`. Rows without
/// keep their spreads.
void sum_spreads(MatrixView<const float> map, const ColumnFacts& columns, const RowSums* rows,
                 const float* means, const float* mass, RowSpreads* spreads, float* squares);

/// `out`[a · `heads` + b] ← −Σ m log m of m = (p_a + p_b) / 2 for heads a < b, nats; the others
/// stay. `rows` has one row a head, of `columns` (whole lanes) floats; `buffer` has `columns`
/// floats.
void mixture_entropies(const float* const* rows, Index heads, Index columns, float* buffer,
                       float* out);

}  // namespace masque::evaluate
