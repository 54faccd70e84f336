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
  int exponent_bits;
  int mantissa_bits;
  int bias;
  SpecialCodes special;
};

inline constexpr NumberFormat kF16{5, 10, 15, SpecialCodes::kIeee};
inline constexpr NumberFormat kBF16{8, 7, 127, SpecialCodes::kIeee};
inline constexpr NumberFormat kF8E4M3{4, 3, 7, SpecialCodes::kFinite};
inline constexpr NumberFormat kF8E5M2{5, 2, 15, SpecialCodes::kIeee};
inline constexpr NumberFormat kF8E4M3Fnuz{4, 3, 8, SpecialCodes::kFnuz};
inline constexpr NumberFormat kF8E5M2Fnuz{5, 2, 16, SpecialCodes::kFnuz};

/// The exact value of a code.
double decode_number(std::uint32_t code, const NumberFormat& format);

/// The code nearest to `value`, ties to even, rounded once. Beyond the largest finite number:
/// infinity where the format has one, else NaN. NaN stays NaN.
std::uint32_t encode_number(double value, const NumberFormat& format);

/// Value of an E8M0 code: 2^(code − 127); 0xFF is NaN.
double decode_e8m0(std::uint32_t code);

}  // namespace masque
