#include "draw/head_explorer.hpp"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <new>
#include <string_view>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/file/output_file.hpp"
#include "base/json/json_writer.hpp"
#include "draw/head_explorer_page.hpp"
#include "draw/palette.hpp"

namespace masque::draw {
namespace {

// The side of a small picture of a head, at most.
constexpr Index kThumbnail = 64;

std::string base64(std::span<const std::uint8_t> bytes) {
  static constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const std::size_t count = std::min<std::size_t>(3, bytes.size() - i);
    std::uint32_t group = 0;
    for (std::size_t k = 0; k < 3; ++k) group = group << 8 | (k < count ? bytes[i + k] : 0U);
    for (std::size_t k = 0; k < 4; ++k) {
      text.push_back(k <= count ? kDigits[group >> (18 - 6 * k) & 63U] : '=');
    }
  }
  return text;
}

std::vector<std::uint8_t> deflated(std::span<const std::uint8_t> bytes) {
  uLongf size = compressBound(static_cast<uLong>(bytes.size()));
  std::vector<std::uint8_t> result(size);
  const int status =
      compress2(result.data(), &size, bytes.data(), static_cast<uLong>(bytes.size()), 6);
  if (status == Z_MEM_ERROR) throw std::bad_alloc();
  MASQUE_CHECK(status == Z_OK);
  result.resize(size);
  return result;
}

/// The largest weight of each part of the map, so that a thin line is not lost.
void add_thumbnail(const HeadWeights& map, Index rows, Index columns, Index height, Index width,
                   std::vector<std::uint8_t>& out) {
  for (Index y = 0; y < height; ++y) {
    for (Index x = 0; x < width; ++x) {
      std::uint8_t most = 0;
      for (Index i = y * rows / height; i < (y + 1) * rows / height; ++i) {
        for (Index j = x * columns / width; j < (x + 1) * columns / width; ++j) {
          most = std::max(most, map.weights[static_cast<std::size_t>(i * columns + j)]);
        }
      }
      out.push_back(most);
    }
  }
}

void add_names(std::string_view key, const std::vector<std::string>& names, JsonWriter& json) {
  json.key(key).begin_array();
  for (const std::string& name : names) json.value(escape(name));
  json.end_array();
}

/// JSON inside <script>: nothing may look like the end of the element.
std::string inside_script(std::string text) {
  std::size_t at = 0;
  while ((at = text.find('<', at)) != std::string::npos) text.replace(at, 1, "\\u003c");
  return text;
}

std::string about(const HeadExplorer& page, Index height, Index width,
                  const std::vector<double>& scales) {
  std::string text;
  JsonWriter json(text);
  json.begin_object().member("title", escape(page.title)).member("layers", page.layers);
  json.member("heads", page.heads).key("thumbnail").array(std::array{height, width});
  add_names("queries", page.queries, json);
  add_names("keys", page.keys, json);
  json.key("scale").array(scales).key("palette").begin_array();
  for (int level = 0; level < kHeatLevels; ++level) {
    const Color c = color_of(static_cast<Ink>(kInkHeat + level), Theme::kLight);
    json.array(std::array{c.red, c.green, c.blue});
  }
  json.end_array().end_object();
  return inside_script(std::move(text));
}

}  // namespace

HeadWeights quantized(std::span<const double> weights) {
  HeadWeights map;
  for (const double weight : weights) {
    if (std::isfinite(weight)) map.scale = std::max(map.scale, weight);
  }
  map.weights.reserve(weights.size());
  for (const double weight : weights) {
    const double part = weight > 0 ? std::min(weight / map.scale, 1.0) : 0;
    map.weights.push_back(static_cast<std::uint8_t>(std::lround(255 * part)));
  }
  return map;
}

void write_head_explorer(const std::string& path, const HeadExplorer& page,
                         const std::function<HeadWeights(Index layer, Index head)>& map) {
  const auto rows = static_cast<Index>(page.queries.size());
  const auto columns = static_cast<Index>(page.keys.size());
  MASQUE_CHECK(page.layers > 0 && page.heads > 0 && rows > 0 && columns > 0);
  const Index height = std::min(rows, kThumbnail);
  const Index width = std::min(columns, kThumbnail);
  const std::string_view text = kHeadExplorerPage;
  constexpr std::string_view kMarker = "<!--DATA-->\n";
  const std::size_t marker = text.find(kMarker);
  MASQUE_CHECK(marker != std::string_view::npos);

  OutputFile file(path);
  const auto write = [&](std::string_view part) {
    write_all(file.descriptor(), as_bytes(part), path);
  };
  write(text.substr(0, marker));
  std::vector<std::uint8_t> thumbnails;
  std::vector<double> scales;
  for (Index layer = 0; layer < page.layers; ++layer) {
    for (Index head = 0; head < page.heads; ++head) {
      const HeadWeights one = map(layer, head);
      MASQUE_CHECK(std::ssize(one.weights) == rows * columns);
      add_thumbnail(one, rows, columns, height, width, thumbnails);
      scales.push_back(one.scale);
      write(fmt::format("<script type=\"text/plain\" id=\"map-{}-{}\">{}</script>\n", layer, head,
                        base64(deflated(one.weights))));
    }
  }
  write(
      fmt::format("<script type=\"text/plain\" id=\"thumbnails\">{}</script>\n"
                  "<script type=\"application/json\" id=\"about\">{}</script>\n",
                  base64(thumbnails), about(page, height, width, scales)));
  write(text.substr(marker + kMarker.size()));
  file.commit();
}

}  // namespace masque::draw
