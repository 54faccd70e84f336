// One or two systems against references: values of metrics, intervals, and tests of the difference.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "base/types.hpp"
#include "evaluate/score/text_metrics.hpp"
#include "evaluate/statistics/summary.hpp"

namespace masque::evaluate {

/// Which intervals and tests are computed.
struct ComparisonRequest {
  double level = kIntervalLevel;  ///< level of the intervals
  Index samples = 1000;           ///< bootstrap samples of lines; 0: no intervals
  Index trials = 10000;           ///< number of trials of approximate randomization; 0: none
  std::uint64_t seed = 0;         ///< seed of samples and trials
  int threads = 0;                ///< as parallel_for takes them; results do not depend on it
  /// Samples and trials; called from several threads.
  std::function<void(std::uint64_t done, std::uint64_t all)> progress = {};
};

/// A metric of the first system, and its comparison with the second one.
struct MetricResult {
  TextMetric metric{};               ///< which one
  double value = 0;                  ///< value of the first system, over all lines
  std::optional<Interval> interval;  ///< bootstrap_interval() over lines
  std::optional<double> against;     ///< the second system's value; the rest only with it
  std::optional<Interval> difference_interval;  ///< interval of value − against in the same samples
  std::optional<double> p_bootstrap;            ///< paired_bootstrap_p(); NaN if a value is
  std::optional<double> p_randomization;        ///< randomization_p(); NaN if a value is
};

/// Receives counts line by line. Memory: 4 bytes per count and line if `keep`, else constant. Not
/// thread-safe.
class TextComparison {
 public:
  /// `metrics` are those to compute. `systems` is 1 or 2; `keep`: keeps the lines for samples and
  /// trials.
  TextComparison(std::vector<TextMetric> metrics, std::size_t systems, bool keep);

  /// Adds lines: for each, `counts` has the counts from LineCounter::add of the first system, then
  /// the second.
  void add(std::span<const std::uint32_t> counts);
  /// Lines so far.
  std::uint64_t lines() const { return lines_; }

  /// The results as `request` says, in the order of the metrics. There is a line; samples and
  /// trials are 0 unless lines were kept, trials also with one system. Cost of a sample or trial
  /// O(lines). Throws Interrupted.
  std::vector<MetricResult> results(const ComparisonRequest& request) const;

 private:
  struct Place {
    TextMetric metric;
    std::size_t first;  ///< index of its first count
    std::size_t width;
  };

  /// Terms of row `row`, of both systems, with a step between them.
  void put_row(Index row, std::size_t step, double* out) const;
  std::vector<double> bootstrap(const ComparisonRequest& request) const;
  std::vector<double> exchanged(const ComparisonRequest& request) const;
  void add_bootstrap(const ComparisonRequest& request, std::vector<MetricResult>& results) const;
  void add_randomization(const ComparisonRequest& request,
                         std::vector<MetricResult>& results) const;

  std::vector<Place> places_;
  std::size_t width_;  ///< width of one system
  std::size_t systems_;
  bool keep_;
  std::uint64_t lines_ = 0;
  std::vector<double> sums_;  ///< sums of all lines' terms
  std::vector<std::uint32_t> counts_;
};

}  // namespace masque::evaluate
