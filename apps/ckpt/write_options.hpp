// Options of the commands that write checkpoints.
#pragma once

#include <optional>
#include <string>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "cli/command.hpp"
#include "tensor/dtype.hpp"

namespace masque::ckpt {

inline constexpr const char* kDtypeHelp = "F64, F32, F16, BF16, F8_E4M3 or F8_E5M2";

/// --dtype; `tensors` begins the help: "new type of floating-point tensors: ".
template <class Name>  // a text, or one that may be absent
void add_dtype(cli::Command& command, Name& name, const std::string& tensors = "") {
  command.option("--dtype", "NAME", name, tensors + kDtypeHelp);
}

/// --shard-size, as store::parse_byte_size reads it.
inline void add_shard_size(cli::Command& command, std::optional<std::string>& size) {
  command.option("--shard-size", "SIZE", size, "maximum size of a file, like 500MB, 5GB, 1GiB");
}

/// The type of the value of --dtype. Throws UsageError.
inline DType parse_dtype(const std::string& name) {
  const auto dtype = find_dtype(name);
  const bool known = dtype == DType::kF64 || dtype == DType::kF32 || dtype == DType::kF16 ||
                     dtype == DType::kBF16 || dtype == DType::kF8E4M3 || dtype == DType::kF8E5M2;
  if (!known)
    throw UsageError(fmt::format("--dtype: found '{}', expected {}", escape(name), kDtypeHelp));
  return *dtype;
}

}  // namespace masque::ckpt
