#include "metrics.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/json.hpp"
#include "base/split.hpp"
#include "draw/chart.hpp"
#include "draw/svg.hpp"

namespace masque::lm_train {

MetricsRead read_metrics(std::string_view text, const std::string& path) {
  MetricsRead out;
  int number = 0;
  for_each_line(text, [&](std::string_view one) {
    ++number;
    const JsonValue line = parse_json_file(one, fmt::format("{}: line {}", path, number));
    const JsonValue* at = line.find("step");
    const auto found = at == nullptr ? std::nullopt : at->integer();
    if (!found) throw InputError(fmt::format("{}:{}", path, number), "no step, expected one");
    const auto step = static_cast<std::int64_t>(*found);
    if (const JsonValue* loss = line.find("loss"))
      out.losses.push_back({step, loss->number().value_or(kNoMean)});
    if (line.find("eval_loss") != nullptr) out.evaluated = step;
    if (line.find("never_selected_loss") != nullptr) out.never_selected = step;
  });
  return out;
}

double mean_of_points(std::span<const LossPoint> points) {
  double sum = 0;
  std::int64_t count = 0;
  for (const LossPoint& point : points) {
    if (!std::isfinite(point.loss)) continue;
    sum += point.loss;
    ++count;
  }
  return count > 0 ? sum / static_cast<double>(count) : kNoMean;
}

std::string loss_picture(std::span<const LossPoint> points, std::string_view objective) {
  draw::Curve curve{"loss", {}, {}};
  // One point of so many.
  const std::size_t width = std::max<std::size_t>(1, points.size() / 200);
  for (std::size_t i = 0; i + width <= points.size(); i += width) {
    const auto some = points.subspan(i, width);
    const double mean = mean_of_points(some);
    if (!std::isfinite(mean)) continue;
    curve.x.push_back(static_cast<double>(some.back().step));
    curve.y.push_back(mean);
  }
  draw::Chart chart;
  chart.title = fmt::format("{}: loss", objective);
  chart.x.name = "step";
  chart.y.name = "nats a token";
  chart.curves.push_back(std::move(curve));
  return draw::svg(chart);
}

}  // namespace masque::lm_train
