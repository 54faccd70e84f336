// Sums over rows drawn at random, and significance tests of the difference between two systems.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "base/types.hpp"
#include "evaluate/statistics/summary.hpp"

namespace masque::evaluate {

/// Rows of numbers, e.g. what each line of a text adds to a metric. From 1 to 2³² − 1 rows.
struct SampledRows {
  Index rows = 0;   ///< how many
  Index width = 0;  ///< numbers of a row
  /// Writes rows first … first + count − 1 column by column: number k of row first + i to
  /// out[k · count + i]. Called from several threads.
  std::function<void(Index first, Index count, double* out)> read;
};

/// How rows are drawn for a replicate.
enum class RowDraw {
  kBootstrap,  ///< as many rows as there are, with repetition (Efron 1979)
  kCoin,       ///< each row or not, with chance 1/2
};

/// What resampled_sums() draws.
struct ResamplingRequest {
  RowDraw how = RowDraw::kBootstrap;              ///< how rows are drawn
  Index replicates = 1000;                        ///< draws, at least 1
  std::uint64_t seed = 0;                         ///< seed of the draws
  int threads = 0;                                ///< as parallel_for takes them
  std::function<void(Index done)> progress = {};  ///< replicates; called from several threads
};

/// The sums over `rows` of each draw of `request`: replicates × width, row by row. All numbers of a
/// row are drawn together: columns of two systems stay paired. Replicate r is a function of seed, r
/// and the number of rows alone; sums run in the order of the rows: the result is the same for any
/// number of threads.
///
/// Cost replicates · rows · width; memory 32 bytes a row and thread, and the result. Thread-safe.
/// Throws Interrupted.
std::vector<double> resampled_sums(const SampledRows& rows, const ResamplingRequest& request);

/// The fewest rows that have a bootstrap_interval(). With fewer, replicates cannot leave the range
/// of the rows, which contains the true value too seldom: of two rows in half of the cases.
constexpr Index kFewestSampledRows = 8;

/// The interval of `level`, 0 < level < 1, from `replicates`, at least one, of a statistic of
/// `rows` rows: the expanded percentile interval (Hesterberg 2015,
/// doi:10.1080/00031305.2015.1089789, 4.3). Its ends are the quantiles Φ(−t √(n / (n − 1))) and 1
/// less that, where n = `rows` and t is student_quantile(level, n − 1). This makes up for the
/// spread of the replicates, which is √((n − 1) / n) of what it should be, and for the unknown
/// spread of the rows, as t does in Student's interval. A quantile is interpolated between the two
/// nearest order statistics. None with fewer than kFewestSampledRows rows; NaN if a replicate is
/// NaN.
std::optional<Interval> bootstrap_interval(std::vector<double> replicates, Index rows,
                                           double level = kIntervalLevel);

/// (c + 1) / (n + 1), where c of n `statistics` are larger than the `observed` one; by more than
/// rounding, 10⁻¹² of `scale` or of 1 if that is more. As sacreBLEU counts (and Clark's multeval):
/// a system against itself has the smallest p there is, not 1.
double exceedance(std::span<const double> statistics, double observed, double scale);

/// Paired bootstrap resampling (Koehn 2004) with sacreBLEU's p: how often |a − b| of a replicate,
/// less the mean of these over all replicates, exceeds |`observed_a` − `observed_b`|. `a` and `b`
/// are the values of two systems in the same replicates, at least one; `observed_a` and
/// `observed_b` their values over all rows.
double paired_bootstrap_p(std::span<const double> a, std::span<const double> b, double observed_a,
                          double observed_b);

/// Approximate randomization (Riezler and Maxwell 2005), two-sided: how often |a − b| of systems
/// whose lines were exchanged at random exceeds |`observed_a` − `observed_b`|. `a` and `b` have the
/// values of both systems after each exchange, at least one.
double randomization_p(std::span<const double> a, std::span<const double> b, double observed_a,
                       double observed_b);

}  // namespace masque::evaluate
