#include "draw/scene.hpp"

#include <cmath>

#include "draw/text.hpp"

namespace masque::draw {

int Metrics::width(const std::string& text, Font font) const {
  return static_cast<int>(std::ceil(text_columns(text) * sizes[static_cast<int>(font)].column));
}

int Metrics::columns(int pixels, Font font) const {
  return std::max(1, static_cast<int>(pixels / sizes[static_cast<int>(font)].column));
}

Box box_of(const Text& text, const Metrics& metrics) {
  const int length = metrics.width(text.text, text.font);
  const int line = metrics.line(text.font);
  const int before = text.anchor == Anchor::kStart ? 0
                     : text.anchor == Anchor::kEnd ? length
                                                   : length / 2;
  if (text.upright) return {text.x - line / 2, text.y + before - length, line, length};
  return {text.x - before, text.y - line / 2, length, line};
}

void shift(Scene& scene, int x, int y) {
  for (Cells& cells : scene.cells) {
    cells.x += x;
    cells.y += y;
  }
  for (Fill& fill : scene.fills) {
    fill.box.x += x;
    fill.box.y += y;
  }
  const auto move = [&](std::vector<Point>& points) {
    for (Point& point : points) {
      point.x += x;
      point.y += y;
    }
  };
  for (Area& area : scene.areas) move(area.points);
  for (Line& line : scene.lines) move(line.points);
  for (Text& text : scene.texts) {
    text.x += x;
    text.y += y;
  }
}

void add_frame(Scene& scene, Box box) {
  const int width = box.width + 2;
  scene.fills.push_back({{box.x - 1, box.y - 1, width, 1}});
  scene.fills.push_back({{box.x - 1, box.bottom(), width, 1}});
  scene.fills.push_back({{box.x - 1, box.y, 1, box.height}});
  scene.fills.push_back({{box.right(), box.y, 1, box.height}});
}

}  // namespace masque::draw
