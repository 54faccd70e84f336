// Elements of any type to doubles and back, in blocks.
#pragma once

#include <string>

#include "base/types.hpp"
#include "tensor/dtype.hpp"

namespace masque {

/// Decodes out.size() elements. `in` need not be aligned and holds exactly that many elements.
/// Exact, except 64-bit integers beyond 2^53, which are rounded. C64: real and imaginary parts in
/// turn, so out is twice as long. Not for packed types.
void to_double(DType dtype, Bytes in, std::span<double> out);

/// The same to floats; what is wider is rounded once to nearest, ties to even, and may overflow to
/// infinity. Not for packed types, nor C64.
void to_float(DType dtype, Bytes in, std::span<float> out);

/// Encodes doubles, each rounded once to nearest, ties to even. Only the types of is_float.
void from_double(DType dtype, std::span<const double> in, MutableBytes out);

/// True if from_double can write this type.
bool can_encode(DType dtype);

/// Doubles that to_double gives for one element: 2 for C64, else 1.
inline std::size_t components(DType dtype) { return dtype == DType::kC64 ? 2 : 1; }

/// One element as text that reads back to the same value: integers and BOOL as integers, floats
/// with the digits that their type needs, C64 as "re,im". `element` points at its bytes.
std::string element_text(DType dtype, const std::byte* element);

}  // namespace masque
