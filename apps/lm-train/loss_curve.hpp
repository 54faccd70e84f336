// The curve of a loss over any number of steps, in a bounded number of points.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "draw/chart.hpp"

namespace masque::lm_train {

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
