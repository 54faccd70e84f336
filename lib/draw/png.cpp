#include "draw/png.hpp"

#include <png.h>

#include <algorithm>
#include <array>
#include <new>

#include <fmt/format.h>

#include "base/error.hpp"
#include "draw/chart_layout.hpp"
#include "draw/grid_layout.hpp"
#include "draw/raster.hpp"

namespace masque::draw {

namespace {

constexpr int kMaxPixels = 16384;

std::vector<std::byte> encode(Raster raster) {
  // Only the colours that occur: with few of them a dot takes less than a byte.
  std::array<bool, kRasterColors> used{};
  for (const std::uint8_t dot : raster.dots) used[dot] = true;
  std::array<std::uint8_t, kRasterColors> place{};
  std::vector<std::uint8_t> colors;
  for (int dot = 0; dot < kRasterColors; ++dot) {
    if (!used[static_cast<std::size_t>(dot)]) continue;
    place[static_cast<std::size_t>(dot)] = static_cast<std::uint8_t>(colors.size() / 3);
    const Color color = raster_color(dot);
    colors.insert(colors.end(), {color.red, color.green, color.blue});
  }
  for (std::uint8_t& dot : raster.dots) dot = place[dot];

  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  image.width = static_cast<png_uint_32>(raster.width);
  image.height = static_cast<png_uint_32>(raster.height);
  image.format = PNG_FORMAT_RGB_COLORMAP;
  image.colormap_entries = static_cast<png_uint_32>(colors.size() / 3);
  png_alloc_size_t size = PNG_IMAGE_PNG_SIZE_MAX(image);
  std::vector<std::byte> out(size);
  const int is_written = png_image_write_to_memory(&image, out.data(), &size, 0, raster.dots.data(),
                                                   raster.width, colors.data());
  // Its sizes and colours are right: what libpng can lack is memory.
  if (is_written == 0) throw std::bad_alloc();
  out.resize(size);
  return out;
}

std::vector<std::byte> draw_scene(const Scene& scene, int scale) {
  MASQUE_CHECK(scale >= 1 && scale <= kMaxPngScale);
  if (std::max(scene.width, scene.height) * scale > kMaxPixels) {
    throw UsageError(fmt::format("the PNG has {} x {} pixels, expected at most {} on each side",
                                 scene.width * scale, scene.height * scale, kMaxPixels));
  }
  return encode(rasterize(scene, scale));
}

}  // namespace

std::vector<std::byte> png(const Figure& figure, int scale) {
  return draw_scene(lay_out(figure, kPngMetrics), scale);
}

std::vector<std::byte> png(const Chart& chart, int scale) {
  return draw_scene(lay_out(chart, kPngMetrics), scale);
}

}  // namespace masque::draw
