// Element types, as safetensors names them, and shapes.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace masque {

/// Element types in ascending order of the rank by which the reference writer sorts tensors
/// (it writes the highest rank first).
enum class DType : unsigned char {
  kBool,
  kF4,
  kF6E2M3,
  kF6E3M2,
  kU8,
  kI8,
  kF8E5M2,
  kF8E4M3,
  kF8E8M0,
  kF8E4M3Fnuz,
  kF8E5M2Fnuz,
  kI16,
  kU16,
  kF16,
  kBF16,
  kI32,
  kU32,
  kF32,
  kC64,
  kF64,
  kI64,
  kU64,
};

/// "F32", "BF16", …
std::string_view dtype_name(DType dtype);

/// The type of this name; names are case-sensitive, as in files.
std::optional<DType> find_dtype(std::string_view name);

/// All types, in rank order.
std::span<const DType> all_dtypes();

/// Bits of one element: 4, 6, 8, 16, 32 or 64.
unsigned dtype_bits(DType dtype);

/// Elements of fewer than 8 bits; their order inside a byte is not specified by the format, so they
/// are handled as opaque bytes.
inline bool is_packed(DType dtype) { return dtype_bits(dtype) < 8; }

/// A real floating-point type of at least 8 bits.
bool is_float(DType dtype);

/// Sizes of the dimensions, row-major; empty means one element.
using Shape = std::vector<std::uint64_t>;

/// "[30522,768]".
std::string shape_text(const Shape& shape);

/// Product of the dimensions, multiplied from the left; nothing if a partial product overflows.
std::optional<std::uint64_t> element_count(const Shape& shape);

/// Bytes of a tensor; nothing on overflow or if the bits do not fill whole bytes.
std::optional<std::uint64_t> byte_count(DType dtype, const Shape& shape);

}  // namespace masque
