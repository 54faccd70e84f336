// Small floating-point formats, bit by bit.
#pragma once

#include <cstdint>

#include "tensor/dtype.hpp"

namespace masque {

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
