// Views read through the reader equal what plain loops gather, whole and in pieces.
#include "store/strided_reader.hpp"

#include <algorithm>

#include <doctest/doctest.h>

#include "base/random/random.hpp"
#include "store/values.hpp"
#include "support/memory_file.hpp"

namespace masque::store {
namespace {

/// Element by element.
std::string gathered(std::string_view file, const StridedPlace& place) {
  const std::uint64_t elements = element_count(place.sizes).value();
  std::string out;
  for (std::uint64_t i = 0; i < elements; ++i) {
    std::uint64_t rest = i;
    std::uint64_t at = 0;
    for (std::size_t d = place.sizes.size(); d > 0; --d) {
      at += rest % place.sizes[d - 1] * place.strides[d - 1];
      rest /= place.sizes[d - 1];
    }
    std::string element(file.substr(place.begin + at * place.element_bytes, place.element_bytes));
    for (std::size_t b = 0; place.swap_bytes > 1 && b < element.size(); b += place.swap_bytes)
      std::reverse(element.begin() + static_cast<std::ptrdiff_t>(b),
                   element.begin() + static_cast<std::ptrdiff_t>(b + place.swap_bytes));
    out += element;
  }
  return out;
}

std::string read(const InputFile& file, const StridedPlace& place, std::uint64_t offset,
                 std::uint64_t size) {
  std::string out(size, '\0');
  make_strided_reader(place, make_strided_tile())
      ->read(file, offset, std::as_writable_bytes(std::span(out)));
  return out;
}

void check_place(const std::string& bytes, const StridedPlace& place) {
  const InputFile file = test::MemoryFile(bytes).open();
  const std::string expected = gathered(bytes, place);
  CHECK(read(file, place, 0, expected.size()) == expected);
  const RandomStream stream(5, "pieces");
  for (std::uint64_t i = 0; i < 40; ++i) {
    const PhiloxBlock block = stream.block(i);
    const std::uint64_t from = block[0] % expected.size();
    const std::uint64_t size = block[1] % (expected.size() - from + 1);
    if (read(file, place, from, size) != expected.substr(from, size))
      FAIL_CHECK("bytes ", from, " to ", from + size);
  }
}

TEST_CASE("every kind of view is gathered, from any byte to any byte") {
  const std::string bytes = random_bytes(1, 5000);
  for (const std::uint64_t element : {1U, 2U, 4U, 8U}) {
    for (const StridedPlace& place :
         {StridedPlace{0, element, {7, 11}, {11, 1}}, StridedPlace{3, element, {7, 11}, {1, 7}},
          StridedPlace{5, element, {3, 4, 5}, {1, 15, 3}},
          StridedPlace{0, element, {5, 4}, {37, 3}}, StridedPlace{8, element, {4, 6}, {0, 2}},
          StridedPlace{8, element, {4, 6, 2}, {3, 0, 1}}, StridedPlace{1, element, {9, 5}, {1, 1}},
          StridedPlace{0, element, {2, 3, 2, 2, 3}, {1, 2, 6, 12, 24}},
          StridedPlace{0, element, {1, 6, 1}, {99, 2, 77}}, StridedPlace{4, element, {}, {}}}) {
      CAPTURE(element);
      CAPTURE(shape_text(place.strides));
      check_place(bytes, place);
      StridedPlace swapped = place;
      swapped.swap_bytes = element;
      check_place(bytes, swapped);
    }
  }
}

TEST_CASE("long and far views are read in pieces") {
  const std::string bytes = random_bytes(2, 9'000'000);
  check_place(bytes, {0, 4, {1500, 1499}, {1, 1500}});       // transposed, larger than the buffer
  check_place(bytes, {4, 8, {1'100'000}, {1}});              // in order, larger than the buffer
  check_place(bytes, {4, 1, {1'700'000}, {5}});              // every fifth
  check_place(bytes, {0, 2, {3, 40}, {1'000'000, 50'000}});  // far from each other
}

TEST_CASE("readers of one file share what is gathered ahead") {
  const std::string bytes = random_bytes(3, 100'000);
  const InputFile file = test::MemoryFile(bytes).open();
  const auto tile = make_strided_tile();
  const StridedPlace a{0, 4, {50, 60}, {1, 50}};
  const StridedPlace b{12'000, 2, {70, 90}, {1, 70}};
  const auto read_a = make_strided_reader(a, tile);
  auto read_b = make_strided_reader(b, tile);
  std::string out_a(12'000, '\0');
  std::string out_b(12'600, '\0');
  for (std::size_t at = 0; at < 12'000; at += 600) {
    read_a->read(file, at, std::as_writable_bytes(std::span(out_a).subspan(at, 600)));
    read_b->read(file, at, std::as_writable_bytes(std::span(out_b).subspan(at, 600)));
  }
  read_b->read(file, 12'000, std::as_writable_bytes(std::span(out_b).subspan(12'000)));
  CHECK(out_a == gathered(bytes, a));
  CHECK(out_b == gathered(bytes, b));
  read_b.reset();
  read_a->read(file, 0, std::as_writable_bytes(std::span(out_a)));
  CHECK(out_a == gathered(bytes, a));
}

TEST_CASE("the bytes of a view reach from its first element to its last") {
  const auto tile = make_strided_tile();
  const auto extent = [&](const StridedPlace& place) {
    return strided_extent(*make_strided_reader(place, tile)).value();
  };
  CHECK(extent({100, 4, {2, 3}, {10, 1}}) == std::pair<std::uint64_t, std::uint64_t>(100, 152));
  CHECK(extent({100, 4, {5, 1}, {0, 7}}) == std::pair<std::uint64_t, std::uint64_t>(100, 104));
}

TEST_CASE("contiguous is what has no gaps, dimensions of one aside") {
  CHECK(is_contiguous({2, 3}, {3, 1}));
  CHECK(is_contiguous({2, 1, 3}, {3, 99, 1}));
  CHECK(is_contiguous({}, {}));
  CHECK(is_contiguous({1}, {0}));
  CHECK_FALSE(is_contiguous({2, 3}, {1, 2}));
  CHECK_FALSE(is_contiguous({2, 3}, {4, 1}));
  CHECK_FALSE(is_contiguous({2}, {0}));
}

}  // namespace
}  // namespace masque::store
