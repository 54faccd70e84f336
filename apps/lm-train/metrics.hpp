// metrics.jsonl of a run, read again where the run goes on, and the curve of its loss.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace masque::lm_train {

/// Means of what may have no rows: then they are no number.
inline constexpr double kNoMean = std::numeric_limits<double>::quiet_NaN();

struct LossPoint {
  std::int64_t step = 0;
  double loss = kNoMean;  ///< not finite: none
};

/// What the lines of a run say that its next process needs.
struct MetricsRead {
  std::vector<LossPoint> losses;     ///< of training, in the order of the lines
  std::int64_t evaluated = -1;       ///< the last step with such a line
  std::int64_t never_selected = -1;  ///< the last step with such a line
};

/// Throws InputError with `path` and the line for what is no JSON or has no step.
MetricsRead read_metrics(std::string_view text, const std::string& path);

/// Of those that have a loss; of none no number.
double mean_of_points(std::span<const LossPoint> points);

/// An SVG of all points that have a loss.
std::string loss_picture(std::span<const LossPoint> points, std::string_view objective);

}  // namespace masque::lm_train
