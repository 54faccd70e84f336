// Transposed matrices of every width, against the definition.
#include "store/transpose.hpp"

#include <string>

#include <doctest/doctest.h>

#include "store/values.hpp"

namespace masque::store {
namespace {

TEST_CASE("matrices of every width and many sizes are transposed, gaps stay") {
  for (const std::size_t width : {1U, 2U, 3U, 4U, 8U, 16U}) {
    for (const std::size_t rows : {1U, 2U, 15U, 16U, 33U, 64U, 100U}) {
      for (const std::size_t columns : {1U, 3U, 16U, 31U, 65U, 128U}) {
        CAPTURE(width);
        CAPTURE(rows);
        CAPTURE(columns);
        const std::string in = random_bytes(rows * columns, rows * columns * width);
        const std::size_t stride = rows * width + 5;
        std::string found(columns * stride, '#');
        std::string expected = found;
        for (std::size_t i = 0; i < rows; ++i) {
          for (std::size_t j = 0; j < columns; ++j)
            expected.replace(j * stride + i * width, width, in, (i * columns + j) * width, width);
        }
        transpose(std::as_bytes(std::span(in)).data(), rows, columns, width,
                  std::as_writable_bytes(std::span(found)).data(), stride);
        CHECK((found == expected));
      }
    }
  }
}

}  // namespace
}  // namespace masque::store
