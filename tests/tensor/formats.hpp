// The small float formats, as table for the tests of this folder.
#pragma once

#include <array>

#include "tensor/convert.hpp"

namespace masque {

struct NamedFormat {
  DType dtype;
  NumberFormat format;
  std::uint32_t codes;  ///< how many there are: 2^bits
};

inline constexpr std::array<NamedFormat, 6> kSmallFormats{{
    {DType::kF16, kF16, 65536},
    {DType::kBF16, kBF16, 65536},
    {DType::kF8E4M3, kF8E4M3, 256},
    {DType::kF8E5M2, kF8E5M2, 256},
    {DType::kF8E4M3Fnuz, kF8E4M3Fnuz, 256},
    {DType::kF8E5M2Fnuz, kF8E5M2Fnuz, 256},
}};

}  // namespace masque
