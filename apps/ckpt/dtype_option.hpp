// --dtype NAME, shared by the commands that write.
#pragma once

#include <optional>
#include <string>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "tensor/dtype.hpp"

namespace masque::ckpt {

inline constexpr const char* kDtypeHelp = "F64, F32, F16, BF16, F8_E4M3 or F8_E5M2";

/// The type of an option's value. Throws UsageError.
inline DType parse_dtype(const std::string& name) {
  const auto dtype = find_dtype(name);
  const bool known = dtype == DType::kF64 || dtype == DType::kF32 || dtype == DType::kF16 ||
                     dtype == DType::kBF16 || dtype == DType::kF8E4M3 || dtype == DType::kF8E5M2;
  if (!known)
    throw UsageError(fmt::format("--dtype: found '{}', expected {}", escape(name), kDtypeHelp));
  return *dtype;
}

}  // namespace masque::ckpt
