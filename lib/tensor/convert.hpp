// Elements of any type to doubles and back, in blocks.
#pragma once

#include <cstdint>
#include <string>

#include "base/types.hpp"
#include "tensor/dtype.hpp"

namespace masque {

/// Decodes `in`, elements of `dtype`, little-endian, to out.size() numbers. `in` need not be
/// aligned and holds exactly that many elements. Exact, except 64-bit integers beyond 2^53, which
/// are rounded to nearest. C64: real and imaginary parts in turn, so `out` is twice as long. Not
/// for packed types.
void to_double(DType dtype, Bytes in, std::span<double> out);

/// Decodes `in`, elements of `dtype`, to out.size() floats, as to_double does. What is wider is
/// rounded to nearest, ties to even, and may overflow to infinity; 64-bit integers are rounded to
/// double first. Not for packed types, nor C64.
void to_float(DType dtype, Bytes in, std::span<float> out);

/// Encodes the numbers of `in` as `dtype`, little-endian, into `out`, which has exactly their size
/// and need not be aligned. Each is rounded once to nearest, ties to even; what lies beyond the
/// largest finite number is encoded as encode_number says. Only the types of can_encode.
void from_double(DType dtype, std::span<const double> in, MutableBytes out);

/// True if from_double can write `dtype`: the types of is_float except F8_E8M0.
bool can_encode(DType dtype);

/// Numbers that to_double gives for one element of `dtype`: 2 for C64, else 1.
inline std::size_t components(DType dtype) { return dtype == DType::kC64 ? 2 : 1; }

/// One element of type `dtype` as text that reads back to the same value: integers and BOOL as
/// integers, floats with the digits that their type needs, C64 as "re,im". `element` points at its
/// bytes, which need not be aligned. Not for packed types.
std::string element_text(DType dtype, const std::byte* element);

// Small floating-point formats, bit by bit.

/// Which codes a format spends on values that are not finite.
enum class SpecialCodes {
  kIeee,    ///< the highest exponent is infinity and NaN
  kFinite,  ///< no infinity; NaN is all ones (E4M3 of OCP)
  kFnuz,    ///< no infinity, no −0; NaN is the code of −0
};

/// Layout of a binary floating-point format with a sign bit.
struct NumberFormat {
  int exponent_bits;     ///< bits of the exponent
  int mantissa_bits;     ///< stored bits of the mantissa
  int bias;              ///< what is subtracted from a stored exponent
  SpecialCodes special;  ///< codes of what is not finite
};

/// IEEE binary16.
inline constexpr NumberFormat kF16{5, 10, 15, SpecialCodes::kIeee};
/// bfloat16: the upper half of a float.
inline constexpr NumberFormat kBF16{8, 7, 127, SpecialCodes::kIeee};
/// E4M3 of OCP: no infinity, largest 448.
inline constexpr NumberFormat kF8E4M3{4, 3, 7, SpecialCodes::kFinite};
/// E5M2 of OCP: largest 57344.
inline constexpr NumberFormat kF8E5M2{5, 2, 15, SpecialCodes::kIeee};
/// E4M3 without infinity and −0: largest 240.
inline constexpr NumberFormat kF8E4M3Fnuz{4, 3, 8, SpecialCodes::kFnuz};
/// E5M2 without infinity and −0: largest 57344.
inline constexpr NumberFormat kF8E5M2Fnuz{5, 2, 16, SpecialCodes::kFnuz};

/// The exact value of `code`, the low bits of which are a number of `format`.
double decode_number(std::uint32_t code, const NumberFormat& format);

/// The code of `format` that is nearest to `value`, ties to even, rounded once. Beyond the largest
/// finite number: infinity where the format has one, else NaN. NaN stays NaN. −0 and negative
/// numbers that round to 0 keep their sign, except in the FNUZ formats.
std::uint32_t encode_number(double value, const NumberFormat& format);

/// Value of the E8M0 code `code`, 0 … 255: 2^(code − 127); 0xFF is NaN.
double decode_e8m0(std::uint32_t code);

}  // namespace masque
