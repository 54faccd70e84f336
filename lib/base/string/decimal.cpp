#include "base/string/decimal.hpp"

#include <array>
#include <cstring>

namespace masque {

namespace {

/// Pairs of digits, for numbers below ten thousand in two steps.
constexpr std::array<char, 200> kPairs = [] {
  std::array<char, 200> pairs{};
  for (std::size_t i = 0; i < 100; ++i) {
    pairs[2 * i] = static_cast<char>('0' + i / 10);
    pairs[2 * i + 1] = static_cast<char>('0' + i % 10);
  }
  return pairs;
}();

}  // namespace

char* write_decimal(std::int32_t value, char* out) {
  std::uint32_t rest = static_cast<std::uint32_t>(value);
  if (value < 0) {
    *out++ = '-';
    rest = 0U - rest;
  }
  std::array<char, 10>
      digits;  // NOLINT(cppcoreguidelines-pro-type-member-init): filled from the end
  std::size_t at = digits.size();
  while (rest >= 100) {
    at -= 2;
    std::memcpy(digits.data() + at, kPairs.data() + std::size_t{2} * (rest % 100), 2);
    rest /= 100;
  }
  if (rest >= 10) {
    at -= 2;
    std::memcpy(digits.data() + at, kPairs.data() + std::size_t{2} * rest, 2);
  } else {
    digits[--at] = static_cast<char>('0' + rest);
  }
  std::memcpy(out, digits.data() + at, digits.size() - at);
  return out + (digits.size() - at);
}

}  // namespace masque
