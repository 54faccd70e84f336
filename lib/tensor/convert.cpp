#include "tensor/convert.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/little_endian.hpp"
#include "base/processor/vectorize.hpp"

namespace masque {

namespace {

template <class T>
void widen(const std::byte* in, std::size_t n, double* out) {
  for (std::size_t i = 0; i < n; ++i)
    out[i] = static_cast<double>(load_number<T>(in + i * sizeof(T)));
}

template <class Out>
void widen_bf16_to(const std::byte* in, std::size_t n, Out* out) {
  for (std::size_t i = 0; i < n; ++i) {
    const std::uint32_t bits = std::uint32_t{load_number<std::uint16_t>(in + 2 * i)} << 16;
    out[i] = static_cast<Out>(std::bit_cast<float>(bits));
  }
}

// The exponent moves from bias 15 to 127 by a multiplication, which also normalises subnormals.
template <class Out>
void widen_f16_to(const std::byte* in, std::size_t n, Out* out) {
  for (std::size_t i = 0; i < n; ++i) {
    const std::uint32_t code = load_number<std::uint16_t>(in + 2 * i);
    const std::uint32_t magnitude = code & 0x7FFF;
    const std::uint32_t infinite = magnitude >= 0x7C00 ? 0x7F800000U : 0U;
    const float finite = std::bit_cast<float>(magnitude << 13) * 0x1p112F;
    const std::uint32_t bits =
        std::bit_cast<std::uint32_t>(finite) | infinite | (code & 0x8000) << 16;
    out[i] = static_cast<Out>(std::bit_cast<float>(bits));
  }
}

inline void narrow_f32(const double* in, std::size_t n, std::byte* out) {
  for (std::size_t i = 0; i < n; ++i) {
    const auto value = static_cast<float>(in[i]);
    std::memcpy(out + 4 * i, &value, 4);
  }
}

template <class Code>
void decode_all(const std::byte* in, std::span<double> out, const NumberFormat& format) {
  for (std::size_t i = 0; i < out.size(); ++i) {
    out[i] = decode_number(load_number<Code>(in + i * sizeof(Code)), format);
  }
}

template <class Code>
void encode_all(std::span<const double> in, std::byte* out, const NumberFormat& format) {
  for (std::size_t i = 0; i < in.size(); ++i) {
    const auto code = static_cast<Code>(encode_number(in[i], format));
    std::memcpy(out + i * sizeof(Code), &code, sizeof code);
  }
}

// Values in the normal range of the 16-bit format, which is nearly all, take the short way.
template <int kMantissa, int kBias, int kTop>
void encode_16(std::span<const double> in, std::byte* out, const NumberFormat& format) {
  constexpr int kShift = 52 - kMantissa;
  for (std::size_t i = 0; i < in.size(); ++i) {
    const auto bits = std::bit_cast<std::uint64_t>(in[i]);
    const int exponent = static_cast<int>((bits >> 52) & 0x7FF) - 1023 + kBias;
    std::uint16_t code = 0;
    if (exponent >= 1 && exponent < kTop) {
      const std::uint64_t magnitude =
          (bits & 0x000FFFFFFFFFFFFFULL) | static_cast<std::uint64_t>(exponent) << 52;
      const std::uint64_t rounded =
          (magnitude + (std::uint64_t{1} << (kShift - 1)) - 1 + ((magnitude >> kShift) & 1)) >>
          kShift;
      code = static_cast<std::uint16_t>(rounded | (bits >> 63) << 15);
    } else {
      code = static_cast<std::uint16_t>(encode_number(in[i], format));
    }
    std::memcpy(out + 2 * i, &code, 2);
  }
}

}  // namespace

void to_double(DType dtype, Bytes in, std::span<double> out) {
  MASQUE_CHECK(!is_packed(dtype));
  MASQUE_CHECK(in.size() * components(dtype) == out.size() * (dtype_bits(dtype) / 8));
  const std::byte* data = in.data();
  switch (dtype) {
    case DType::kBool:
    case DType::kU8: return widen<std::uint8_t>(data, out.size(), out.data());
    case DType::kI8: return widen<std::int8_t>(data, out.size(), out.data());
    case DType::kI16: return widen<std::int16_t>(data, out.size(), out.data());
    case DType::kU16: return widen<std::uint16_t>(data, out.size(), out.data());
    case DType::kI32: return widen<std::int32_t>(data, out.size(), out.data());
    case DType::kU32: return widen<std::uint32_t>(data, out.size(), out.data());
    case DType::kI64: return widen<std::int64_t>(data, out.size(), out.data());
    case DType::kU64: return widen<std::uint64_t>(data, out.size(), out.data());
    case DType::kF64: return widen<double>(data, out.size(), out.data());
    case DType::kC64:
    case DType::kF32: return vectorized<widen<float>>(data, out.size(), out.data());
    case DType::kBF16: return vectorized<widen_bf16_to<double>>(data, out.size(), out.data());
    case DType::kF16: return vectorized<widen_f16_to<double>>(data, out.size(), out.data());
    case DType::kF8E4M3: return decode_all<std::uint8_t>(data, out, kF8E4M3);
    case DType::kF8E5M2: return decode_all<std::uint8_t>(data, out, kF8E5M2);
    case DType::kF8E4M3Fnuz: return decode_all<std::uint8_t>(data, out, kF8E4M3Fnuz);
    case DType::kF8E5M2Fnuz: return decode_all<std::uint8_t>(data, out, kF8E5M2Fnuz);
    case DType::kF8E8M0:
      for (std::size_t i = 0; i < out.size(); ++i)
        out[i] = decode_e8m0(load_number<std::uint8_t>(data + i));
      return;
    case DType::kF4:
    case DType::kF6E2M3:
    case DType::kF6E3M2: break;
  }
  MASQUE_CHECK(false);
}

void to_float(DType dtype, Bytes in, std::span<float> out) {
  MASQUE_CHECK(!is_packed(dtype) && dtype != DType::kC64);
  const std::size_t width = dtype_bits(dtype) / 8;
  MASQUE_CHECK(in.size() == out.size() * width);
  switch (dtype) {
    case DType::kF32:
      if (!out.empty()) std::memcpy(out.data(), in.data(), in.size());
      return;
    case DType::kBF16: return vectorized<widen_bf16_to<float>>(in.data(), out.size(), out.data());
    case DType::kF16: return vectorized<widen_f16_to<float>>(in.data(), out.size(), out.data());
    default: break;
  }
  std::array<double, 1024> block{};
  for (std::size_t begin = 0; begin < out.size(); begin += block.size()) {
    const std::size_t n = std::min(block.size(), out.size() - begin);
    to_double(dtype, in.subspan(begin * width, n * width), std::span(block).first(n));
    vectorized<narrow_f32>(block.data(), n, reinterpret_cast<std::byte*>(out.data() + begin));
  }
}

bool can_encode(DType dtype) { return is_float(dtype) && dtype != DType::kF8E8M0; }

void from_double(DType dtype, std::span<const double> in, MutableBytes out) {
  MASQUE_CHECK(can_encode(dtype));
  MASQUE_CHECK(out.size() == in.size() * (dtype_bits(dtype) / 8));
  std::byte* data = out.data();
  switch (dtype) {
    case DType::kF64:
      if (!in.empty()) std::memcpy(data, in.data(), out.size());
      return;
    case DType::kF32: return vectorized<narrow_f32>(in.data(), in.size(), data);
    case DType::kF16: return encode_16<10, 15, 31>(in, data, kF16);
    case DType::kBF16: return encode_16<7, 127, 255>(in, data, kBF16);
    case DType::kF8E4M3: return encode_all<std::uint8_t>(in, data, kF8E4M3);
    case DType::kF8E5M2: return encode_all<std::uint8_t>(in, data, kF8E5M2);
    case DType::kF8E4M3Fnuz: return encode_all<std::uint8_t>(in, data, kF8E4M3Fnuz);
    default: return encode_all<std::uint8_t>(in, data, kF8E5M2Fnuz);
  }
}

std::string element_text(DType dtype, const std::byte* element) {
  switch (dtype) {
    case DType::kI64: return fmt::format("{}", load_number<std::int64_t>(element));
    case DType::kU64: return fmt::format("{}", load_number<std::uint64_t>(element));
    case DType::kF32: return fmt::format("{}", load_number<float>(element));
    case DType::kC64:
      return fmt::format("{},{}", load_number<float>(element), load_number<float>(element + 4));
    default: break;
  }
  double value = 0;
  to_double(dtype, {element, dtype_bits(dtype) / 8}, {&value, 1});
  // Every value of the smaller types is a float, whose shortest spelling is shorter.
  if (is_float(dtype) && dtype != DType::kF64) return fmt::format("{}", static_cast<float>(value));
  return fmt::format("{}", value);
}

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
