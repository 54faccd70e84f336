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

/// The name of `dtype` in safetensors files: "F32", "BF16", "F8_E4M3", … Never freed.
std::string_view dtype_name(DType dtype);

/// The type that safetensors files call `name`, case-sensitive; nothing if there is none.
std::optional<DType> find_dtype(std::string_view name);

/// All types, in rank order.
std::span<const DType> all_dtypes();

/// Bits of one element of `dtype`: 4, 6, 8, 16, 32 or 64.
unsigned dtype_bits(DType dtype);

/// True if elements of `dtype` have fewer than 8 bits. Their order inside a byte is not specified
/// by the format, so they are handled as opaque bytes.
inline bool is_packed(DType dtype) { return dtype_bits(dtype) < 8; }

/// True if `dtype` is a real floating-point type of at least 8 bits.
bool is_float(DType dtype);

/// Sizes of the dimensions, row-major; empty means one element.
using Shape = std::vector<std::uint64_t>;

/// The dimensions of `shape` as text: "[30522,768]".
std::string shape_text(const Shape& shape);

/// Product of the dimensions of `shape`, multiplied from the left; 1 for an empty shape; nothing if
/// a partial product overflows 64 bits.
std::optional<std::uint64_t> element_count(const Shape& shape);

/// Bytes of a tensor of `shape` with elements of `dtype`; nothing if the number of bits overflows
/// 64 bits or is not a multiple of 8.
std::optional<std::uint64_t> byte_count(DType dtype, const Shape& shape);

}  // namespace masque
