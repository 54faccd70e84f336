// SVG: well-formed, safe, the same bytes every time, small, and with the right cells.
#include "draw/svg.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <locale>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "draw/charts.hpp"
#include "draw/figures.hpp"
#include "draw/palette.hpp"
#include "draw/xml_check.hpp"

namespace masque::draw {
namespace {

TEST_CASE("the checker of XML finds what is wrong") {
  CHECK(XmlCheck("<a b=\"1\"><c/>x &lt; y</a>\n").fault.empty());
  for (const char* bad : {"<a>", "<a></b>", "<a b=\"<\"/>", "<a b=\"1\" b=\"2\"/>", "<a>&nbsp;</a>",
                          "<a/><a/>", "<a>\x01</a>", "<a>\xFF</a>", "<a b=1/>", "", "<a>]]></a>"}) {
    CAPTURE(bad);
    CHECK(!XmlCheck(bad).fault.empty());
  }
}

TEST_CASE("figures and charts are well-formed and name themselves") {
  const auto check = [](const std::string& text) {
    const XmlCheck xml(text);
    CHECK(xml.fault == "");
    REQUIRE(xml.elements.size() > 3);
    const XmlElement& root = xml.elements[0];
    CHECK(root.name == "svg");
    CHECK(root.attributes.at("role") == "img");
    const XmlElement& title = xml.elements[1];
    const XmlElement& description = xml.elements[2];
    CHECK(title.name == "title");
    CHECK(description.name == "desc");
    CHECK(!title.text.empty());
    CHECK(!description.text.empty());
    CHECK(root.attributes.at("aria-labelledby") ==
          title.attributes.at("id") + " " + description.attributes.at("id"));
    for (const XmlElement& element : xml.elements) {
      CHECK((element.name == "svg" || element.name == "title" || element.name == "desc" ||
             element.name == "style" || element.name == "g" || element.name == "path" ||
             element.name == "text"));
      CHECK(element.attributes.count("href") == 0);
    }
  };
  for (const Figure& figure : many_figures()) check(svg(figure));
  for (const Chart& chart : many_charts()) check(svg(chart));
}

TEST_CASE("labels arrive as they are, made safe") {
  Figure figure = labelled(10, 10);
  figure.title = "a < b & \"c\" \x1b]0;x\x07";
  const XmlCheck xml(svg(figure));
  REQUIRE(xml.fault == "");
  CHECK(xml.elements[1].text == "a < b & \"c\" \\x1b]0;x\\x07");
  std::vector<std::string> texts;
  for (const XmlElement& element : xml.elements) {
    if (element.name == "text") texts.push_back(element.text);
  }
  const auto has = [&](const std::string& text) {
    return std::count(texts.begin(), texts.end(), text) == 2;
  };
  CHECK(has("<script>&\"']]>"));
  CHECK(has("日本語のトークン"));
  CHECK(has(" the"));
  CHECK(has("\\n\\t\\x1b[31m"));
  CHECK(has("\\xff\\xc3"));
  CHECK(has("averyveryverylong…"));
  CHECK(has("\\u{202e}rtl"));
  CHECK(has("\uFFFD\uFFFD"));
}

TEST_CASE("the same picture has the same bytes, whatever the locale says of numbers") {
  struct Comma : std::numpunct<char> {
    char do_decimal_point() const override { return ','; }
    std::string do_grouping() const override { return "\1"; }
    char do_thousands_sep() const override { return '.'; }
  };
  const Chart chart = many_charts().back();
  const std::string figure_before = svg(difference(24));
  const std::string chart_before = svg(chart);
  const std::locale before = std::locale::global(std::locale(std::locale(), new Comma));
  const std::string figure_after = svg(difference(24));
  const std::string chart_after = svg(chart);
  std::locale::global(before);
  CHECK(figure_before == figure_after);
  CHECK(chart_before == chart_after);
  CHECK(svg(difference(23)).substr(0, 60) != figure_before.substr(0, 60));  // another id
}

/// The cells of the first grid of a document, from its paths; 255 where none is drawn.
std::vector<std::uint8_t> cells_of(const std::string& text, Index rows, Index columns, int first) {
  std::vector<std::uint8_t> cells(static_cast<std::size_t>(rows * columns), 255);
  const XmlCheck xml(text);
  bool is_in_grid = false;
  for (const XmlElement& element : xml.elements) {
    if (element.name == "g" && is_in_grid) break;
    if (element.name == "g" && element.attributes.count("transform") > 0) is_in_grid = true;
    if (element.name != "path" || !is_in_grid) continue;
    if (element.attributes.at("class").find(' ') != std::string::npos) break;
    const int ink = std::atoi(element.attributes.at("class").c_str() + 1);
    if (ink < first) break;  // the frame
    const char* at = element.attributes.at("d").c_str();
    long x = 0;
    long y = 0;
    long width = 0;
    long height = 0;
    for (int used = 0;
         std::sscanf(at, "M%ld %ldh%ldv%ldh-%*dz%n", &x, &y, &width, &height, &used) == 4;
         at += used) {
      for (long row = y; row < y + height; ++row) {
        for (long column = x; column < x + width; ++column) {
          std::uint8_t& cell = cells[static_cast<std::size_t>(row * columns + column)];
          CHECK(cell == 255);  // none is drawn twice
          cell = static_cast<std::uint8_t>(ink - first);
        }
      }
    }
    CHECK(*at == '\0');
  }
  return cells;
}

TEST_CASE("every cell is drawn once, with its colour") {
  const Grid stripes = class_grid(9, 13, [](Index row, Index column) {
    return (row / 2 * 5 + column / 3 * 7 + (row == 4 && column == 6 ? 1 : 0)) % kClasses;
  });
  const Figure heated = heat(5, 40);
  for (const Grid& grid : {causal(1, 1), causal(7, 5), stripes, difference(20).panels[2].grid}) {
    CHECK(cells_of(svg(figure_of(grid)), grid.rows, grid.columns, kInkClass) == grid.cells);
  }
  CHECK(cells_of(svg(heated), 5, 40, kInkHeat) == heated.panels[0].grid.cells);
}

TEST_CASE("large masks are small files") {
  CHECK(svg(figure_of(causal(1000, 1000))).size() < 50'000);
  const Grid full = class_grid(1000, 1000, [](Index, Index) { return kVisible; });
  CHECK(svg(figure_of(full)).size() < 5'000);
  const Grid stripes = class_grid(1000, 1000, [](Index, Index column) { return column % 2; });
  CHECK(svg(figure_of(stripes)).size() < 30'000);
}

TEST_CASE("every ink that is used has a colour for light and one for dark pages") {
  const std::string text = svg(difference(6));
  const std::size_t dark = text.find("@media screen and (prefers-color-scheme:dark){");
  REQUIRE(dark != std::string::npos);
  for (const Theme theme : {Theme::kLight, Theme::kDark}) {
    for (const Ink ink : {kInkBackground, kInkText, static_cast<Ink>(kInkClass + kOnlyB)}) {
      const Color color = color_of(ink, theme);
      const std::string rule =
          fmt::format(".i{}{{fill:#{:02x}{:02x}{:02x}}}", ink, color.red, color.green, color.blue);
      const std::size_t at = text.find(rule);
      CAPTURE(rule);
      REQUIRE(at != std::string::npos);
      CHECK((at > dark) == (theme == Theme::kDark));
    }
  }
}

TEST_CASE("a curve passes through its points and is interrupted where it has none") {
  Chart chart{.curves = {{"c", {0, 1, 2, 3, 4}, {0, 1, std::nan(""), 1, 0}}}};
  const XmlCheck xml(svg(chart));
  std::vector<std::string> curves;
  for (const XmlElement& element : xml.elements) {
    const auto name = element.attributes.find("class");
    if (name != element.attributes.end() && name->second.starts_with("l ")) {
      curves.push_back(element.attributes.at("d"));
    }
  }
  REQUIRE(curves.size() == 3);  // two pieces and the legend
  double x0 = 0;
  double y0 = 0;
  double x1 = 0;
  double y1 = 0;
  REQUIRE(std::sscanf(curves[0].c_str(), "M%lf %lfL%lf %lf", &x0, &y0, &x1, &y1) == 4);
  CHECK(x1 - x0 == doctest::Approx(140));  // a quarter of the width
  CHECK(y0 - y1 == doctest::Approx(320));  // from 0 up to 1
}

}  // namespace
}  // namespace masque::draw
