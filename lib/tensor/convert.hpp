// Elements of any type to doubles and back, in blocks.
#pragma once

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

}  // namespace masque
