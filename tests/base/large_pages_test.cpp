// Pieces of large pages are apart, aligned, zero at first, and live as long as somebody holds them.
#include "base/processor/large_pages.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <new>
#include <vector>

#include <doctest/doctest.h>

namespace masque::test {
namespace {

TEST_CASE("pieces of all sizes are aligned, zero and apart") {
  const std::vector<std::size_t> sizes = {1, 63, 64, 65, 4096, 20U << 20, 13U << 20, 40U << 20, 7};
  std::vector<std::shared_ptr<std::byte>> pieces;
  for (const std::size_t size : sizes) {
    pieces.push_back(large_pages(size));
    std::byte* data = pieces.back().get();
    CHECK(reinterpret_cast<std::uintptr_t>(data) % 64 == 0);
    CHECK(std::all_of(data, data + size, [](std::byte b) { return b == std::byte{0}; }));
    std::fill_n(data, size, static_cast<std::byte>(pieces.size()));
  }
  for (std::size_t i = 0; i < sizes.size(); i += 2) pieces[i].reset();
  for (std::size_t i = 1; i < sizes.size(); i += 2) {
    const std::byte* data = pieces[i].get();
    CHECK(std::all_of(data, data + sizes[i],
                      [i](std::byte b) { return b == static_cast<std::byte>(i + 1); }));
  }
}

TEST_CASE("more than there is throws") {
  CHECK_THROWS_AS(large_pages(std::numeric_limits<std::size_t>::max()), std::bad_alloc);
  CHECK_THROWS_AS(large_pages(std::numeric_limits<std::size_t>::max() / 2), std::bad_alloc);
}

}  // namespace
}  // namespace masque::test
