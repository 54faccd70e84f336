#include "metrics.hpp"

#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/file/file.hpp"
#include "base/input/line_input.hpp"
#include "base/json/json.hpp"
#include "base/string/split.hpp"
#include "base/thread/interrupt.hpp"

namespace masque::lm_train {

namespace {

constexpr std::uint64_t kLongestMetricsLine = 1 << 20;
constexpr std::size_t kMostShown = 40;

}  // namespace

MetricsLine read_metrics_line(std::string_view text, std::uint64_t number_of_line,
                              const std::string& path) {
  const JsonValue line = parse_json_file(text, fmt::format("{}: line {}", path, number_of_line));
  const JsonValue* at = line.find("step");
  const auto found = at == nullptr ? std::nullopt : at->integer();
  if (!found)
    throw InputError(fmt::format("{}:{}", path, number_of_line),
                     "no key 'step', expected a line of metrics");
  MetricsLine result;
  result.step = static_cast<std::int64_t>(*found);
  const auto number_of = [&](std::string_view name, double& value) {
    const JsonValue* found_value = line.find(name);
    if (found_value == nullptr) return false;
    const std::optional<double> number = found_value->number();
    if (!number && !found_value->is(JsonKind::kNull)) {
      const bool nested = found_value->is(JsonKind::kArray) || found_value->is(JsonKind::kObject);
      const std::string shown = escape(found_value->text.substr(0, kMostShown));
      throw InputError(fmt::format("{}:{}", path, number_of_line),
                       fmt::format("{}: found {}, expected a number", name,
                                   nested ? "several values" : fmt::format("'{}'", shown)));
    }
    value = number.value_or(std::numeric_limits<double>::quiet_NaN());
    return true;
  };
  double loss = 0;
  if (number_of("loss", loss)) result.loss = loss;
  result.evaluation = number_of("eval_loss", result.eval_loss);
  number_of("eval_accuracy", result.eval_accuracy);
  result.never_selected = line.find("never_selected_loss") != nullptr;
  return result;
}

void for_each_metrics_line(const std::string& path,
                           const std::function<void(const MetricsLine&)>& use,
                           const std::function<void(std::string_view)>& batch_use) {
  const InputFile file = InputFile::open(path);
  LineInput lines(file.descriptor(), path, kLongestMetricsLine);
  for (LineBatch batch; lines.read(batch);) {
    throw_if_interrupted();
    std::uint64_t number = batch.first_line;
    for_each_line(batch.text,
                  [&](std::string_view text) { use(read_metrics_line(text, number++, path)); });
    if (batch_use) batch_use(batch.text);
  }
}

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
