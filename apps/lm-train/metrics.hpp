// metrics.jsonl of a run, read again where the run goes on, and the curve of its loss.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "draw/chart.hpp"

namespace masque::lm_train {

/// What a line says that a later process of the run needs, or a table of runs.
struct MetricsLine {
  std::int64_t step = 0;
  std::optional<double> loss;  ///< of a step of training; no number where it had none
  bool evaluation = false;     ///< the losses of evaluations
  double eval_loss = std::numeric_limits<double>::quiet_NaN();      ///< of an evaluation
  double eval_accuracy = std::numeric_limits<double>::quiet_NaN();  ///< of an evaluation
  bool never_selected = false;  ///< the losses of positions that training never selects
};

/// number, path  of the line, for messages. Throws InputError for what is no JSON or has no step,
/// and for a loss or an accuracy that is neither a number nor null, as a loss without targets is.
MetricsLine read_metrics_line(std::string_view text, std::uint64_t number, const std::string& path);

/// Calls `use` for every line of the file `path`, and `batch`, if there is one, with the text of
/// several lines after them. Throws as read_metrics_line; Interrupted.
void for_each_metrics_line(const std::string& path,
                           const std::function<void(const MetricsLine&)>& use,
                           const std::function<void(std::string_view)>& batch = {});

// The curve of a loss over any number of steps, in a bounded number of points.

/// A mean over losses, some of which may be no numbers: of a step without anything to predict.
struct MeanLoss {
  double sum = 0;
  std::int64_t count = 0;  ///< of those that are numbers

  void add(double loss);
  void add(const MeanLoss& other);
  /// Of none no number.
  double value() const;
};

/// Points are means over equally many steps, one step each at first. The same for the same losses,
/// whoever adds them.
class LossCurve {
 public:
  void add(std::int64_t step, double loss);
  /// The points that are complete and have a loss, as a curve called `name`.
  draw::Curve curve(const std::string& name) const;

 private:
  struct Point {
    std::int64_t step = 0;  ///< the last one
    std::int64_t steps = 0;
    MeanLoss loss;
  };

  std::vector<Point> points_;
  std::int64_t width_ = 1;  ///< steps of a point
};

}  // namespace masque::lm_train
