// Whole numbers as the standard library spells them.
#include "base/string/decimal.hpp"

#include <array>
#include <limits>
#include <string>

#include <doctest/doctest.h>

namespace masque {
namespace {

std::string decimal(std::int32_t value) {
  std::array<char, kDecimalChars + 1> out{};
  out.back() = '#';  // beyond the room that is promised
  const char* const end = write_decimal(value, out.data());
  CHECK(out.back() == '#');
  return {out.data(), static_cast<std::size_t>(end - out.data())};
}

TEST_CASE("numbers of every length, and both ends of the type") {
  for (std::int32_t power = 1;; power *= 10) {
    for (const std::int32_t value : {power - 1, power, power + 1, -power, 1 - power})
      CHECK(decimal(value) == std::to_string(value));
    if (power == 1'000'000'000) break;
  }
  for (const std::int32_t value :
       {std::numeric_limits<std::int32_t>::min(), std::numeric_limits<std::int32_t>::max()})
    CHECK(decimal(value) == std::to_string(value));
}

}  // namespace
}  // namespace masque
