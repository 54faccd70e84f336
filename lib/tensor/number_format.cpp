#include "tensor/number_format.hpp"

#include <bit>
#include <cmath>
#include <limits>

namespace masque {

namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

std::uint64_t round_shift(std::uint64_t value, int shift) {
  const std::uint64_t half_less = (std::uint64_t{1} << (shift - 1)) - 1;
  return (value + half_less + ((value >> shift) & 1)) >> shift;  // to nearest, ties to even
}

}  // namespace

double decode_number(std::uint32_t code, const NumberFormat& format) {
  const int sign_bit = format.exponent_bits + format.mantissa_bits;
  const std::uint32_t sign_mask = 1U << sign_bit;
  const bool negative = (code & sign_mask) != 0;
  const std::uint32_t magnitude = code & (sign_mask - 1);
  const std::uint32_t top = (1U << format.exponent_bits) - 1;
  const std::uint32_t exponent = magnitude >> format.mantissa_bits;
  const std::uint32_t mantissa = magnitude & ((1U << format.mantissa_bits) - 1);
  if (format.special == SpecialCodes::kFnuz && code == sign_mask) return kNan;
  if (format.special == SpecialCodes::kFinite && magnitude == sign_mask - 1) return kNan;
  if (format.special == SpecialCodes::kIeee && exponent == top) {
    if (mantissa != 0) return kNan;
    return negative ? -std::numeric_limits<double>::infinity()
                    : std::numeric_limits<double>::infinity();
  }
  const double fraction = exponent == 0 ? mantissa : mantissa + (1U << format.mantissa_bits);
  const int power =
      (exponent == 0 ? 1 : static_cast<int>(exponent)) - format.bias - format.mantissa_bits;
  const double value = std::ldexp(fraction, power);
  return negative ? -value : value;
}

std::uint32_t encode_number(double value, const NumberFormat& format) {
  const auto bits = std::bit_cast<std::uint64_t>(value);
  const int sign_bit = format.exponent_bits + format.mantissa_bits;
  const std::uint32_t sign = static_cast<std::uint32_t>(bits >> 63) << sign_bit;
  const std::uint32_t all = (1U << sign_bit) - 1;
  const std::uint32_t infinity = ((1U << format.exponent_bits) - 1) << format.mantissa_bits;
  const bool fnuz = format.special == SpecialCodes::kFnuz;
  const bool ieee = format.special == SpecialCodes::kIeee;
  const std::uint32_t nan =
      fnuz ? 1U << sign_bit : sign | (ieee ? infinity | 1U << (format.mantissa_bits - 1) : all);
  const std::uint32_t beyond = ieee ? sign | infinity : nan;
  if (std::isnan(value)) return nan;
  if (std::isinf(value)) return beyond;

  const std::uint64_t fraction = bits & 0x000FFFFFFFFFFFFFULL;
  const int exponent = static_cast<int>((bits >> 52) & 0x7FF) - 1023 + format.bias;
  const int shift = 52 - format.mantissa_bits;
  std::uint64_t rounded = 0;
  if (exponent >= 1) {  // a carry out of the mantissa raises the exponent by itself
    rounded = round_shift(static_cast<std::uint64_t>(exponent) << 52 | fraction, shift);
  } else if (shift + 1 - exponent < 63) {
    rounded = round_shift(std::uint64_t{1} << 52 | fraction, shift + 1 - exponent);
  }
  const std::uint64_t largest = ieee                                      ? infinity - 1
                                : format.special == SpecialCodes::kFinite ? all - 1
                                                                          : all;
  if (rounded > largest) return beyond;
  if (rounded == 0 && fnuz) return 0;
  return sign | static_cast<std::uint32_t>(rounded);
}

double decode_e8m0(std::uint32_t code) {
  return code == 0xFF ? kNan : std::ldexp(1.0, static_cast<int>(code) - 127);
}

}  // namespace masque
