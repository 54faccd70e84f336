// Pictures as lines, exactly.
#include "draw/terminal.hpp"

#include <algorithm>

#include <doctest/doctest.h>

#include "base/error.hpp"
#include "draw/figures.hpp"
#include "draw/text.hpp"

namespace masque::draw {
namespace {

constexpr TerminalStyle kAscii{.unicode = false};
constexpr TerminalStyle kColor{.color = true};

TEST_CASE("a small mask is half blocks, two rows in a line") {
  CHECK(terminal(figure_of(causal(5, 6)), {}) ==
        "      key\n"
        "query 0    5\n"
        "    0 █▄····\n"
        "    2 ███▄··\n"
        "    4 ▀▀▀▀▀·\n");
}

TEST_CASE("in ASCII a line has one row") {
  CHECK(terminal(figure_of(causal(3, 4)), kAscii) ==
        "      key\n"
        "query 0   2\n"
        "    0 # . . .\n"
        "    1 # # . .\n"
        "    2 # # # .\n");
}

TEST_CASE("partly visible cells are shades of what both halves let through") {
  // Columns: every pair of blocked, partly visible and visible.
  const Figure figure = figure_of(class_grid(2, 9, [](Index row, Index column) {
    constexpr Class kOrder[] = {kBlocked, kPartial, kVisible};
    return kOrder[row == 0 ? column / 3 : column % 3];
  }));
  CHECK(terminal(figure, {}) ==
        "      key\n"
        "query 0    5\n"
        "    0 ·░▄░▒▓▀▓█\n");
  CHECK(terminal(figure, kAscii) ==
        "      key\n"
        "query 0   2   4   6   8\n"
        "    0 . . . + + + # # #\n"
        "    1 . + # . + # . + #\n");
}

TEST_CASE("tokens are labels, upright above, wide ones in two columns") {
  Figure figure = figure_of(causal(3, 3));
  figure.title = "Tokens";
  figure.panels[0].rows.labels = {"[CLS]", "日本", "x"};
  figure.panels[0].columns.labels = figure.panels[0].rows.labels;
  figure.legend = {{kVisible, "visible"}, {kBlocked, "blocked"}};
  figure.note = "6 of 9";
  CHECK(terminal(figure, {}) ==
        "Tokens\n"
        "\n"
        "      key\n"
        "      [\n"
        "      C\n"
        "      L\n"
        "      S 日\n"
        "query ] 本x\n"
        "[CLS] ██· ·\n"
        " 日本 ████·\n"
        "    x ██████\n"
        "\n"
        "██ visible   · blocked\n"
        "\n"
        "6 of 9\n");
  CHECK(terminal(figure, kAscii) ==
        "Tokens\n"
        "\n"
        "      key\n"
        "      [\n"
        "      C ?\n"
        "      L ?\n"
        "      S ?\n"
        "query ] ? x\n"
        "[CLS] # . .\n"
        " ???? # # .\n"
        "    x # # #\n"
        "\n"
        "# visible   . blocked\n"
        "\n"
        "6 of 9\n");
}

TEST_CASE("panels stand side by side, differences as letters without colour") {
  CHECK(terminal(difference(4), {.width = 60}) ==
        "A and B\n"
        "\n"
        "      A                B                difference\n"
        "      key              key              key\n"
        "query 0   2      query 0   2      query 0   2\n"
        "    0 ██· · ·        0 ██████·        0 ██B B ·\n"
        "    1 ████· ·        1 ████████       1 ████B B\n"
        "    2 ██████·        2 ████████       2 ██████B\n"
        "    3 ████████       3 · ██████       3 A ██████\n"
        "\n"
        "██ both   · none   A only A   B only B\n");
}

TEST_CASE("colours end before the end of the line") {
  CHECK(terminal(figure_of(causal(2, 2)), kColor) ==
        "      key\n"
        "query 0\n"
        "    0 \x1b[38;5;33m█▄\x1b[0m\n");
  const Figure figure = figure_of(class_grid(2, 3, [](Index row, Index column) {
    return column == 1 ? kBlocked : row == 0 ? kOnlyA : column == 0 ? kOnlyB : kBlocked;
  }));
  CHECK(terminal(figure, kColor) ==
        "      key\n"
        "query 0\n"
        "    0 \x1b[38;5;208m\x1b[48;5;170m▀\x1b[0m·\x1b[38;5;208m▀\x1b[0m\n");
}

TEST_CASE("heat is shaded, with its range below") {
  Figure figure = heat(2, 6);
  figure.heat.low = -0.5;
  CHECK(terminal(figure, {}) ==
        "      key\n"
        "query 0   2   4\n"
        "    0 ?   ░░▒▒▓▓██\n"
        "    1     ░░▒▒▓▓██\n"
        "\n"
        "weight: -0.5 [ ░▒▓█] 1\n");
  CHECK(terminal(figure, kAscii) ==
        "      key\n"
        "query 0   2   4\n"
        "    0 ? . - + # @\n"
        "    1   . - + # @\n"
        "\n"
        "weight: -0.5 [ .:-=+*#%@] 1\n");
}

TEST_CASE("numbers are positions, and never on the wrong line") {
  Figure figure = figure_of(causal(40, 20));
  figure.panels[0].rows.zoom = 25;
  figure.panels[0].rows.first = 1000;
  figure.panels[0].columns.zoom = 7;
  const std::string text = terminal(figure, kAscii);
  CHECK(text.find("\n 1000 #") != std::string::npos);
  CHECK(text.find("\n 1100 #") != std::string::npos);
  CHECK(text.find("\nquery 0   20    40") != std::string::npos);
  const std::string halves = terminal(figure, {});
  CHECK(halves.find("\n 1000 ") != std::string::npos);
  CHECK(halves.find("\n 1200 ") != std::string::npos);
  CHECK(halves.find("\n 1100 ") == std::string::npos);
}

TEST_CASE("grids without cells say so") {
  CHECK(terminal(figure_of(causal(0, 3)), {}) == "      key\nquery 0\nempty\n");
  CHECK(terminal(figure_of(causal(3, 0)), {}) == "      key\nquery\nempty\n");
  CHECK(terminal(Figure{}, {}).empty());
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (std::size_t begin = 0, end = 0; begin < text.size(); begin = end + 1) {
    end = text.find('\n', begin);
    REQUIRE(end != std::string::npos);
    lines.push_back(text.substr(begin, end - begin));
  }
  return lines;
}

TEST_CASE("no line is longer than the width, ends in spaces or holds what it should not") {
  for (const Figure& figure : many_figures()) {
    for (const int width : {30, 80, 1000}) {
      for (const bool unicode : {false, true}) {
        bool fits = true;
        for (const Panel& panel : figure.panels) {
          fits = fits && panel.grid.columns <= terminal_cells({.width = width}) - 10;
        }
        if (!fits) continue;
        CAPTURE(description_of(figure));
        CAPTURE(width);
        for (const std::string& line : lines_of(terminal(figure, {width, unicode}))) {
          CAPTURE(line);
          CHECK(text_columns(line) <= width);
          CHECK(!line.ends_with(' '));
          CHECK(std::none_of(line.begin(), line.end(), [&](char c) {
            return static_cast<unsigned char>(c) < 0x20 ||
                   (!unicode && static_cast<unsigned char>(c) >= 0x7F);
          }));
        }
      }
    }
  }
}

TEST_CASE("cells become one column wide where two do not fit, then the picture is refused") {
  CHECK(terminal(figure_of(causal(1, 20)), {.width = 30, .unicode = false}) ==
        "      key\n"
        "query 0    5    10   15\n"
        "    0 #...................\n");
  CHECK_THROWS_WITH_AS(
      terminal(figure_of(causal(1, 25)), {.width = 30}),
      "a picture of 25 columns does not fit into lines of 30 characters: write it to a file",
      UsageError);
  for (int width = 12; width < 200; ++width) {
    const TerminalStyle style{.width = width};
    CHECK_NOTHROW(terminal(figure_of(causal(3, terminal_cells(style))), style));
  }
}

}  // namespace
}  // namespace masque::draw
