// Figures that several tests draw.
#pragma once

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "draw/figure.hpp"

namespace masque::draw {

inline Grid causal(Index rows, Index columns) {
  return class_grid(rows, columns,
                    [](Index row, Index column) { return column <= row ? kVisible : kBlocked; });
}

inline Figure figure_of(Grid grid) {
  return {.panels = {{.grid = std::move(grid), .rows = {"query"}, .columns = {"key"}}}};
}

/// Labels that are hard on every writer.
inline std::vector<std::string> hostile_labels(Index count) {
  const std::vector<std::string> hostile = {
      "<script>&\"']]>", "日本語のトークン",       " the",      "\n\t\x1b[31m", "\xFF\xC3",
      "e\xCC\x81",       "averyveryverylongtoken", "\u202Ertl", "\uFFFE\uFFFF", ""};
  std::vector<std::string> labels;
  for (Index i = 0; i < count; ++i) {
    labels.push_back(hostile[static_cast<std::size_t>(i) % hostile.size()]);
  }
  return labels;
}

inline Figure labelled(Index rows, Index columns) {
  Figure figure = figure_of(causal(rows, columns));
  figure.title = "Labels <b>&\"'";
  figure.panels[0].rows.labels = hostile_labels(rows);
  figure.panels[0].columns.labels = hostile_labels(columns);
  figure.legend = {{kVisible, "visible <&"}, {kBlocked, "blocked"}};
  return figure;
}

/// A, B and their difference.
inline Figure difference(Index length) {
  const auto b = [](Index row, Index column) { return column <= row + 2 && column > row - 3; };
  Figure figure{.title = "A and B"};
  figure.panels = {{"A", causal(length, length), {"query"}, {"key"}},
                   {"B", class_grid(length, length, b), {"query"}, {"key"}},
                   {"difference",
                    class_grid(length, length,
                               [&](Index row, Index column) {
                                 if (column <= row) return b(row, column) ? kVisible : kOnlyA;
                                 return b(row, column) ? kOnlyB : kBlocked;
                               }),
                    {"query"},
                    {"key"}}};
  figure.legend = {{kVisible, "both"}, {kBlocked, "none"}, {kOnlyA, "only A"}, {kOnlyB, "only B"}};
  return figure;
}

/// A heat map that climbs from left to right; the first cell has no value.
inline Figure heat(Index rows, Index columns) {
  std::vector<double> values;
  for (Index i = 0; i < rows * columns; ++i) {
    values.push_back(i == 0 ? std::nan("")
                            : static_cast<double>(i % columns) / static_cast<double>(columns - 1));
  }
  Figure figure = figure_of(heat_grid(rows, columns, values, 0, 1));
  figure.heat = {"weight", 0, 1};
  return figure;
}

/// Pictures of all kinds and sizes.
inline std::vector<Figure> many_figures() {
  std::vector<Figure> figures = {Figure{}, difference(9), difference(24), heat(6, 40)};
  for (const auto& [rows, columns] : std::vector<std::pair<Index, Index>>{{1, 1},
                                                                          {1, 50},
                                                                          {50, 1},
                                                                          {0, 0},
                                                                          {0, 5},
                                                                          {3, 0},
                                                                          {16, 16},
                                                                          {70, 70},
                                                                          {100, 3},
                                                                          {12, 900},
                                                                          {400, 400}}) {
    figures.push_back(figure_of(causal(rows, columns)));
    figures.push_back(labelled(rows, columns));
    figures.push_back(figure_of(causal(rows, columns)));
    figures.back().title = "A zoomed picture that begins late";
    figures.back().panels[0].name = "a name that is much longer than the grid below it is wide";
    figures.back().note = std::string(300, 'n') + " with words " + std::string(300, 'w');
    for (Axis* axis : {&figures.back().panels[0].rows, &figures.back().panels[0].columns}) {
      axis->name = "positions that are counted from the beginning of the text";
      axis->zoom = 11;
      axis->first = 1'000'000;
    }
  }
  Figure flow = difference(20);
  for (int i = 0; i < 9; ++i) flow.panels.push_back(flow.panels[0]);
  figures.push_back(flow);
  flow.panels_per_row = 2;
  flow.panels[1].grid = causal(7, 30);
  figures.push_back(flow);
  return figures;
}

}  // namespace masque::draw
