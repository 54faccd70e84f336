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
  if (!dtype)
    throw UsageError(fmt::format("--dtype: found '{}', expected {}", escape(name), kDtypeHelp));
  return *dtype;
}

}  // namespace masque::ckpt
