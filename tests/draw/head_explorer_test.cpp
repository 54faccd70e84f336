// The page of heads: every weight can be read back, and no label breaks out.
#include "draw/head_explorer.hpp"

#include <zlib.h>

#include <cmath>
#include <limits>
#include <string>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "base/json/json.hpp"
#include "support/temp_folder.hpp"

namespace masque::draw {
namespace {

std::string element(const std::string& page, const std::string& id) {
  const std::string begin = fmt::format("id=\"{}\">", id);
  const std::size_t at = page.find(begin);
  REQUIRE(at != std::string::npos);
  const std::size_t first = at + begin.size();
  return page.substr(first, page.find("</script>", first) - first);
}

std::vector<std::uint8_t> from_base64(const std::string& text) {
  const std::string digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::vector<std::uint8_t> bytes;
  std::uint32_t group = 0;
  int bits = 0;
  for (const char c : text) {
    if (c == '=') break;
    const std::size_t digit = digits.find(c);
    REQUIRE(digit != std::string::npos);
    group = group << 6 | static_cast<std::uint32_t>(digit);
    bits += 6;
    if (bits < 8) continue;
    bits -= 8;
    bytes.push_back(static_cast<std::uint8_t>(group >> bits & 255U));
  }
  return bytes;
}

TEST_CASE("every weight of every head can be read back") {
  const test::TempFolder folder;
  const std::string path = folder / "page.html";
  const Index rows = 70, columns = 67;
  const auto weight = [](Index layer, Index head, Index i, Index j) {
    const double x = std::abs(std::sin(static_cast<double>(i * 31 + j * 7 + layer * 3 + head)));
    return layer == 1 && head == 0 ? 3 * x : x;  // one head whose weights are no shares
  };
  HeadExplorer page{"a </script><b> & title", 2, 3, {}, {}};
  for (Index i = 0; i < rows; ++i) page.queries.push_back(fmt::format("</script>{}", i));
  for (Index j = 0; j < columns; ++j) page.keys.push_back(fmt::format("\u202e\"{}", j));
  const auto map = [&](Index layer, Index head) {
    std::vector<double> weights;
    for (Index i = 0; i < rows; ++i) {
      for (Index j = 0; j < columns; ++j) weights.push_back(weight(layer, head, i, j));
    }
    return quantized(weights);
  };
  write_head_explorer(path, page, map);
  const std::string text = test::read_file(path);
  const JsonValue about = parse_json_file(element(text, "about"), "about");
  CHECK(element(text, "about").find('<') == std::string::npos);
  CHECK(about.find("queries")->items.size() == 70);
  CHECK(about.find("keys")->items.size() == 67);
  for (Index layer = 0; layer < 2; ++layer) {
    for (Index head = 0; head < 3; ++head) {
      const double scale = map(layer, head).scale;
      CHECK((scale > 1) == (layer == 1 && head == 0));
      const auto packed = from_base64(element(text, fmt::format("map-{}-{}", layer, head)));
      std::vector<std::uint8_t> bytes(static_cast<std::size_t>(rows * columns));
      uLongf size = bytes.size();
      REQUIRE(uncompress(bytes.data(), &size, packed.data(), packed.size()) == Z_OK);
      REQUIRE(size == bytes.size());
      double worst = 0;
      for (Index i = 0; i < rows; ++i) {
        for (Index j = 0; j < columns; ++j) {
          const double found = bytes[static_cast<std::size_t>(i * columns + j)] * scale / 255;
          worst = std::max(worst, std::abs(found - weight(layer, head, i, j)));
        }
      }
      CHECK(worst <= scale / 510 + 1e-12);
    }
  }
  const auto thumbnails = from_base64(element(text, "thumbnails"));
  CHECK(thumbnails.size() == 6 * 64 * 64);
}

TEST_CASE("weights that are none count as 0") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double infinity = std::numeric_limits<double>::infinity();
  const std::vector<double> weights = {nan, -1, 0.5, infinity};
  const HeadWeights map = quantized(weights);
  CHECK(map.scale == 1);
  CHECK(map.weights == std::vector<std::uint8_t>{0, 0, 128, 255});
}

}  // namespace
}  // namespace masque::draw
