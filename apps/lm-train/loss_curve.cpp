#include "loss_curve.hpp"

#include <cmath>
#include <limits>

namespace masque::lm_train {

namespace {

// Twice as many as a picture of its width shows well: half of them are left when they are joined.
constexpr std::size_t kMostPoints = 400;

}  // namespace

void MeanLoss::add(double loss) {
  if (!std::isfinite(loss)) return;
  sum += loss;
  ++count;
}

void MeanLoss::add(const MeanLoss& other) {
  sum += other.sum;
  count += other.count;
}

double MeanLoss::value() const {
  return count > 0 ? sum / static_cast<double>(count) : std::numeric_limits<double>::quiet_NaN();
}

void LossCurve::add(std::int64_t step, double loss) {
  if (points_.empty() || points_.back().steps == width_) {
    if (points_.size() == kMostPoints) {
      for (std::size_t i = 0; i < kMostPoints / 2; ++i) {
        Point joined = points_[2 * i];
        const Point& second = points_[2 * i + 1];
        joined.step = second.step;
        joined.steps += second.steps;
        joined.loss.add(second.loss);
        points_[i] = joined;
      }
      points_.resize(kMostPoints / 2);
      width_ *= 2;
    }
    points_.emplace_back();
  }
  Point& last = points_.back();
  last.step = step;
  ++last.steps;
  last.loss.add(loss);
}

draw::Curve LossCurve::curve(const std::string& name) const {
  draw::Curve curve{name, {}, {}};
  for (const Point& point : points_) {
    const double mean = point.loss.value();
    if (point.steps < width_ || !std::isfinite(mean)) continue;
    curve.x.push_back(static_cast<double>(point.step));
    curve.y.push_back(mean);
  }
  return curve;
}

}  // namespace masque::lm_train
