// Numbers that are none are found, at whatever place, and floats of any type are the nearest.
#include "tensor/finite.hpp"

#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include <doctest/doctest.h>

#include "tensor/convert.hpp"

namespace masque::test {
namespace {

template <class T>
void check_places() {
  const std::size_t sizes[] = {1, 7, 4095, 4096, 4097, 10000};
  for (const std::size_t n : sizes) {
    std::vector<T> values(n, std::numeric_limits<T>::max());
    values[n / 2] = -std::numeric_limits<T>::denorm_min();
    CHECK_FALSE(first_not_finite(std::span<const T>(values)).has_value());
    for (const std::size_t place : {std::size_t{0}, n / 3, n - 1}) {
      for (const T bad : {std::numeric_limits<T>::infinity(), -std::numeric_limits<T>::infinity(),
                          std::numeric_limits<T>::quiet_NaN()}) {
        std::vector<T> broken = values;
        broken[n - 1] = bad;
        broken[place] = bad;
        CHECK(first_not_finite(std::span<const T>(broken)) == place);
      }
    }
  }
  CHECK_FALSE(first_not_finite(std::span<const T>()).has_value());
}

TEST_CASE("the first number that is none is found") {
  check_places<float>();
  check_places<double>();
}

TEST_CASE("every 16-bit code becomes the same float as by way of double") {
  for (const DType dtype : {DType::kF16, DType::kBF16, DType::kI16}) {
    std::vector<std::uint16_t> codes(65536);
    for (std::size_t i = 0; i < codes.size(); ++i) codes[i] = static_cast<std::uint16_t>(i);
    const Bytes bytes = std::as_bytes(std::span(codes));
    std::vector<double> wide(codes.size());
    std::vector<float> narrow(codes.size());
    to_double(dtype, bytes, wide);
    to_float(dtype, bytes, narrow);
    for (std::size_t i = 0; i < codes.size(); ++i) {
      const auto expected = static_cast<float>(wide[i]);
      const bool same =
          std::bit_cast<std::uint32_t>(expected) == std::bit_cast<std::uint32_t>(narrow[i]);
      CHECK((same || (std::isnan(expected) && std::isnan(narrow[i]))));
    }
  }
}

TEST_CASE("doubles become floats with one rounding") {
  const std::vector<double> values{0.1, 1e300, -1e-50, 1 + 0x1p-24, 1 + 0x1.8p-23};
  std::vector<float> narrow(values.size());
  to_float(DType::kF64, std::as_bytes(std::span(values)), narrow);
  CHECK(narrow == std::vector<float>{0.1F, INFINITY, -0.0F, 1.0F, 1 + 0x1p-22F});
}

}  // namespace
}  // namespace masque::test
