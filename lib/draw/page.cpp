#include "draw/page.hpp"

#include <algorithm>

#include "base/escape.hpp"
#include "draw/text.hpp"
#include "draw/ticks.hpp"

namespace masque::draw {

namespace {

constexpr int kMargin = 14;
constexpr int kGap = 12;
constexpr int kLeastWidth = 300;  ///< narrower pictures leave no room for a title
constexpr int kSwatch = 12;
constexpr int kCurveSwatch = 24;
constexpr int kBarWidth = 2 * kHeatLevels;

/// Adds lines of text from (0, y) on; returns where they end.
int add_lines(Scene& scene, const std::string& text, Font font, Ink ink, int y, int most,
              const Metrics& metrics) {
  for (std::string& line : wrap(escape(text), metrics.columns(scene.width, font), most)) {
    const int middle = y + metrics.line(font) / 2;
    scene.texts.push_back({.text = std::move(line), .y = middle, .font = font, .ink = ink});
    y += metrics.line(font);
  }
  return y;
}

int add_legend(Scene& scene, const std::vector<Key>& legend, int y, const Metrics& metrics) {
  const int line = std::max(kSwatch + 2, metrics.line(Font::kText)) + 2;
  int x = 0;
  for (const Key& key : legend) {
    const int swatch = key.is_curve ? kCurveSwatch : kSwatch;
    const int room = metrics.columns(scene.width - swatch - 6, Font::kText);
    std::string name = shorten(escape(key.name), room);
    const int width = swatch + 6 + metrics.width(name, Font::kText);
    if (x > 0 && x + width > scene.width) {
      x = 0;
      y += line;
    }
    const int middle = y + line / 2;
    if (key.is_curve) {
      const double at = middle;
      scene.lines.push_back({{{x + 1.0, at}, {x + swatch - 1.0, at}}, key.ink, key.dash});
    } else {
      const Box box{x + 1, middle - kSwatch / 2 + 1, kSwatch - 2, kSwatch - 2};
      add_frame(scene, box);
      scene.fills.push_back({box, key.ink});
    }
    scene.texts.push_back({.text = std::move(name), .x = x + swatch + 6, .y = middle});
    x += width + 18;
  }
  return legend.empty() ? y : y + line;
}

int add_color_bar(Scene& scene, const HeatScale& heat, int y, const Metrics& metrics) {
  if (!heat.name.empty()) y = add_lines(scene, heat.name, Font::kText, kInkText, y, 1, metrics);
  const Box bar{1, y + 3, kBarWidth, kSwatch};
  add_frame(scene, bar);
  for (int level = 0; level < kHeatLevels; ++level) {
    const int step = kBarWidth / kHeatLevels;
    scene.fills.push_back(
        {{bar.x + level * step, bar.y, step, bar.height}, static_cast<Ink>(kInkHeat + level)});
  }
  const int line = metrics.line(Font::kLabel);
  const int middle = bar.bottom() + 3 + line / 2;
  scene.texts.push_back(
      {legend_number(heat.low), 0, middle, Font::kLabel, Anchor::kStart, false, kInkQuiet});
  scene.texts.push_back({legend_number(heat.high), kBarWidth + 2, middle, Font::kLabel,
                         Anchor::kEnd, false, kInkQuiet});
  return bar.bottom() + 3 + line;
}

}  // namespace

Scene finish_page(Scene body, const Page& page, const Metrics& metrics) {
  Scene scene;
  scene.width = std::max(kLeastWidth, body.width);
  int y = add_lines(scene, page.title, Font::kTitle, kInkText, 0, 3, metrics);
  if (y > 0) y += kGap;
  shift(body, 0, y);
  y += body.height;
  for (Text& text : scene.texts) body.texts.push_back(std::move(text));
  body.width = scene.width;
  if (page.heat != nullptr) y = add_color_bar(body, *page.heat, y + kGap, metrics);
  if (!page.legend.empty()) y = add_legend(body, page.legend, y + kGap, metrics);
  if (!page.note.empty()) {
    y = add_lines(body, page.note, Font::kText, kInkQuiet, y + kGap, 6, metrics);
  }
  body.width += 2 * kMargin;
  body.height = y + 2 * kMargin;
  shift(body, kMargin, kMargin);
  return body;
}

}  // namespace masque::draw
