#include "store/transpose.hpp"

#include <algorithm>
#include <array>
#include <cstring>

namespace masque::store {

namespace {

constexpr std::size_t kLineBytes = 64;

/// One tile by way of a copy that lies together: rows a power of two apart would push each other
/// out of the cache.
template <std::size_t kWidth>
void transpose_in_tiles(const std::byte* in, std::size_t rows, std::size_t columns, std::byte* out,
                        std::size_t stride) {
  constexpr std::size_t kTile = std::min<std::size_t>(kLineBytes / kWidth, 32);
  std::array<std::byte, kTile * kTile * kWidth> tile;
  for (std::size_t i = 0; i < rows; i += kTile) {
    const std::size_t height = std::min(kTile, rows - i);
    for (std::size_t j = 0; j < columns; j += kTile) {
      const std::size_t breadth = std::min(kTile, columns - j);
      for (std::size_t y = 0; y < height; ++y) {
        std::memcpy(tile.data() + y * kTile * kWidth, in + ((i + y) * columns + j) * kWidth,
                    breadth * kWidth);
      }
      for (std::size_t x = 0; x < breadth; ++x) {
        std::byte* to = out + (j + x) * stride + i * kWidth;
        for (std::size_t y = 0; y < height; ++y)
          std::memcpy(to + y * kWidth, tile.data() + (y * kTile + x) * kWidth, kWidth);
      }
    }
  }
}

}  // namespace

void transpose(const std::byte* in, std::size_t rows, std::size_t columns, std::size_t width,
               std::byte* out, std::size_t stride) {
  switch (width) {
    case 1: return transpose_in_tiles<1>(in, rows, columns, out, stride);
    case 2: return transpose_in_tiles<2>(in, rows, columns, out, stride);
    case 4: return transpose_in_tiles<4>(in, rows, columns, out, stride);
    case 8: return transpose_in_tiles<8>(in, rows, columns, out, stride);
    case 16: return transpose_in_tiles<16>(in, rows, columns, out, stride);
    default: break;
  }
  for (std::size_t i = 0; i < rows; ++i) {
    for (std::size_t j = 0; j < columns; ++j)
      std::memcpy(out + j * stride + i * width, in + (i * columns + j) * width, width);
  }
}

}  // namespace masque::store
