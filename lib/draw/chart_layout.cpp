#include "draw/chart_layout.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/string/comma_list.hpp"
#include "draw/page.hpp"
#include "draw/text.hpp"
#include "draw/ticks.hpp"

namespace masque::draw {

namespace {

constexpr int kWidth = 560;
constexpr int kHeight = 320;
constexpr int kAxisTick = 4;
constexpr int kTickDistance = 36;  ///< pixels between numbers, at least, upwards
constexpr int kNumberGap = 6;

/// Values to pixels along one axis.
struct Scale {
  double low = 0;
  double high = 1;
  bool logarithmic = false;
  int pixels = 0;
  std::vector<Tick> ticks;

  bool takes(double value) const { return std::isfinite(value) && (!logarithmic || value > 0); }
  double at(double value) const {
    const auto place = [&](double v) { return logarithmic ? std::log(v) : v / 2; };  // no overflow
    const double part = (place(value) - place(low)) / (place(high) - place(low));
    return part * pixels;
  }
};

/// The range of the values that can be drawn, widened if it is a single one.
Scale range_of(const Chart& chart, std::vector<double> Curve::*values, const ChartAxis& axis) {
  Scale scale{.logarithmic = axis.logarithmic};
  double low = std::numeric_limits<double>::infinity();
  double high = -low;
  const auto reach = [&](double value) {
    if (!scale.takes(value)) return;
    low = std::min(low, value);
    high = std::max(high, value);
  };
  for (const Curve& curve : chart.curves) {
    std::ranges::for_each(curve.*values, reach);
    if (values != &Curve::y) continue;
    std::ranges::for_each(curve.low, reach);
    std::ranges::for_each(curve.high, reach);
  }
  if (axis.from) reach(*axis.from);
  if (axis.to) reach(*axis.to);
  if (low > high) {
    low = scale.logarithmic ? 1 : 0;
    high = scale.logarithmic ? 10 : 1;
  }
  const double least = 1e-9 * std::max(std::abs(low), std::abs(high));
  if (high - low <= least) {
    const double more = low == 0 ? 1 : std::abs(low) / 2;
    low = std::max(low - more, std::numeric_limits<double>::lowest());
    high = std::min(high + more, std::numeric_limits<double>::max());
  }
  scale.low = low;
  scale.high = high;
  return scale;
}

void set_ticks(Scale& scale, int most) {
  const auto ticks = scale.logarithmic ? log_ticks : linear_ticks;
  scale.ticks = ticks(scale.low, scale.high, most);
}

/// Upwards a chart begins and ends at a number.
void widen_to_ticks(Scale& scale, int most) {
  set_ticks(scale, most);
  if (scale.logarithmic || scale.ticks.size() < 2) return;
  const double step = scale.ticks[1].value - scale.ticks[0].value;
  if (scale.low < scale.ticks.front().value - 1e-9 * step) {
    scale.low = scale.ticks.front().value - step;
  }
  if (scale.high > scale.ticks.back().value + 1e-9 * step) {
    scale.high = scale.ticks.back().value + step;
  }
  set_ticks(scale, most + 2);
}

/// Whether two numbers under the chart have less than the room that they need.
bool touch(const Tick& a, const Tick& b, const Scale& scale, const Metrics& metrics) {
  const int room = metrics.width(a.text + b.text, Font::kLabel) / 2 + 12;
  return scale.at(b.value) - scale.at(a.value) < room;
}

/// Numbers under the chart: as many as do not touch; of given ones always the last.
void set_x_ticks(Scale& scale, const ChartAxis& axis, const Metrics& metrics) {
  if (!axis.ticks.empty()) {
    std::vector<double> values = axis.ticks;
    std::ranges::sort(values, std::greater<>());
    for (const double value : values) {
      if (!scale.takes(value) || value < scale.low || value > scale.high) continue;
      const Tick tick{value, number_text(value)};
      if (scale.ticks.empty() || !touch(tick, scale.ticks.back(), scale, metrics))
        scale.ticks.push_back(tick);
    }
    std::ranges::reverse(scale.ticks);
    return;
  }
  for (int most = 12; most > 0; --most) {
    set_ticks(scale, most);
    bool some = false;
    for (std::size_t i = 1; i < scale.ticks.size(); ++i)
      some = some || touch(scale.ticks[i - 1], scale.ticks[i], scale, metrics);
    if (!some) return;
  }
  scale.ticks.resize(std::min<std::size_t>(scale.ticks.size(), 1));
}

/// The band of a curve, in pieces where points are left out.
void add_band(Scene& scene, const Curve& curve, const Scale& x, const Scale& y, Ink ink) {
  MASQUE_CHECK(curve.low.size() == curve.x.size() && curve.high.size() == curve.x.size());
  std::vector<Point> above, below;
  const auto finish = [&] {
    if (above.size() > 1) {
      above.insert(above.end(), below.rbegin(), below.rend());
      scene.areas.push_back({above, ink});
    }
    above.clear();
    below.clear();
  };
  for (std::size_t i = 0; i < curve.x.size(); ++i) {
    if (!x.takes(curve.x[i]) || !y.takes(curve.low[i]) || !y.takes(curve.high[i])) {
      finish();
      continue;
    }
    above.push_back({x.at(curve.x[i]), kHeight - y.at(curve.high[i])});
    below.push_back({x.at(curve.x[i]), kHeight - y.at(curve.low[i])});
  }
  finish();
}

/// A point without neighbours, as a square: strokes of a line's thickness, one under the other.
void add_marker(Scene& scene, Point at, Ink ink) {
  constexpr double kSide = 2;
  Line line{.ink = ink};
  for (const double y : {-kSide, 0.0, kSide}) {
    line.points.push_back({at.x - kSide, at.y + y});
    line.points.push_back({at.x + kSide, at.y + y});
  }
  scene.lines.push_back(line);
}

void add_curve(Scene& scene, const Curve& curve, const Scale& x, const Scale& y, Ink ink,
               Dash dash) {
  Line line{.ink = ink, .dash = dash};
  const auto finish = [&] {
    if (line.points.size() == 1) {
      add_marker(scene, line.points.front(), ink);
    } else if (!line.points.empty()) {
      scene.lines.push_back(line);
    }
    line.points.clear();
  };
  for (std::size_t i = 0; i < curve.x.size(); ++i) {
    if (!x.takes(curve.x[i]) || !y.takes(curve.y[i])) {
      finish();
      continue;
    }
    const Point point{x.at(curve.x[i]), kHeight - y.at(curve.y[i])};
    // Thousands of points on one pixel are drawn once.
    if (!line.points.empty() && std::abs(line.points.back().x - point.x) < 0.05 &&
        std::abs(line.points.back().y - point.y) < 0.05) {
      continue;
    }
    line.points.push_back(point);
  }
  finish();
}

/// Rules, numbers and names, the chart's corner at (0, 0); returns the room that is needed to the
/// left of it.
int add_axes(Scene& scene, const Chart& chart, const Scale& x, const Scale& y,
             const Metrics& metrics) {
  const int line = metrics.line(Font::kLabel);
  int widest = 0;
  for (const Tick& tick : y.ticks) {
    const int at = kHeight - static_cast<int>(std::lround(y.at(tick.value)));
    scene.fills.push_back({{0, at, kWidth, 1}, kInkRule});
    scene.texts.push_back(
        {tick.text, -kNumberGap, at, Font::kLabel, Anchor::kEnd, false, kInkQuiet});
    widest = std::max(widest, metrics.width(tick.text, Font::kLabel));
  }
  for (const Tick& tick : x.ticks) {
    const int at = static_cast<int>(std::lround(x.at(tick.value)));
    scene.fills.push_back({{at, 0, 1, kHeight}, kInkRule});
    scene.fills.push_back({{at, kHeight + 1, 1, kAxisTick}});
    scene.texts.push_back({tick.text, at, kHeight + kAxisTick + 3 + line / 2, Font::kLabel,
                           Anchor::kMiddle, false, kInkQuiet});
  }
  scene.fills.push_back({{0, 0, 1, kHeight}});
  scene.fills.push_back({{0, kHeight, kWidth + 1, 1}});
  const int name = metrics.line(Font::kText);
  const auto name_of = [&](const ChartAxis& axis, int side) {
    std::string text = axis.name;
    if (axis.logarithmic) text += text.empty() ? "logarithmic" : " (logarithmic)";
    return shorten(escape(text), metrics.columns(side, Font::kText));
  };
  scene.texts.push_back({.text = name_of(chart.x, kWidth),
                         .x = kWidth / 2,
                         .y = kHeight + kAxisTick + 3 + line + 2 + name / 2,
                         .anchor = Anchor::kMiddle});
  scene.texts.push_back({.text = name_of(chart.y, kHeight),
                         .x = -kNumberGap - widest - 4 - (name - name / 2),
                         .y = kHeight / 2,
                         .anchor = Anchor::kMiddle,
                         .upright = true});
  const int first = x.ticks.empty() ? 0 : metrics.width(x.ticks.front().text, Font::kLabel) / 2 + 1;
  return std::max(kNumberGap + widest + 4 + name, first);
}

std::string description_of(const Chart& chart) {
  if (!chart.description.empty()) return chart.description;
  if (chart.curves.empty()) return "An empty chart.";
  return fmt::format("Curves of {} over {}: {}.", chart.y.name, chart.x.name,
                     comma_list(chart.curves, &Curve::name));
}

}  // namespace

Scene lay_out(const Chart& chart, const Metrics& metrics) {
  Scene body;
  Page page{.title = chart.title, .note = chart.note};
  Scale x = range_of(chart, &Curve::x, chart.x);
  Scale y = range_of(chart, &Curve::y, chart.y);
  x.pixels = kWidth;
  y.pixels = kHeight;
  widen_to_ticks(y, kHeight / kTickDistance);
  set_x_ticks(x, chart.x, metrics);
  const int left = add_axes(body, chart, x, y, metrics);

  for (std::size_t i = 0; i < chart.curves.size(); ++i) {
    const Curve& curve = chart.curves[i];
    MASQUE_CHECK(curve.x.size() == curve.y.size());
    const auto ink = static_cast<Ink>(kInkCurve + i % kCurveInks);
    const auto dash = static_cast<Dash>(i / kCurveInks % 3);
    if (!curve.low.empty() || !curve.high.empty()) add_band(body, curve, x, y, ink);
    add_curve(body, curve, x, y, ink, dash);
    page.legend.push_back({curve.name, ink, true, dash});
  }
  const int top = metrics.line(Font::kLabel) / 2 + 2;
  shift(body, left, top);
  const int last = x.ticks.empty() ? 0 : metrics.width(x.ticks.back().text, Font::kLabel) / 2 + 1;
  body.width = left + kWidth + std::max(2, last);
  body.height =
      top + kHeight + kAxisTick + 5 + metrics.line(Font::kLabel) + metrics.line(Font::kText);
  Scene scene = finish_page(std::move(body), page, metrics);
  scene.title = escape(chart.title);
  scene.description = escape(description_of(chart));
  return scene;
}

}  // namespace masque::draw
