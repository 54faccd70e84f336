// In what numbers a model computes.
#pragma once

#include <string_view>

#include "base/string/name_table.hpp"

namespace masque::kernel {

/// The numbers in which a model computes.
enum class Precision {
  kF32,   ///< float throughout
  kBf16,  ///< operands of matrix products rounded to bfloat16, sums in float; the rest float
  kF64,   ///< double throughout, by the reference kernels
};

/// "f32", "bf16", "f64", with their values; training takes all but the last.
NameTable<Precision> precision_names();
/// The name of `precision` in precision_names().
std::string_view precision_name(Precision precision);

}  // namespace masque::kernel
