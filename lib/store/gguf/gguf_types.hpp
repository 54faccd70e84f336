// The numbers that GGUF files have for types of elements and of metadata.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "tensor/dtype.hpp"

namespace masque::store {

/// A type of tensors. Quantised ones keep their elements in blocks along the last dimension of a
/// shape.
struct GgmlType {
  std::uint32_t number = 0;                   ///< ggml's, as files have it
  std::string_view name;                      ///< ggml's: "F32", "Q4_K"; static text
  std::uint64_t block_elements = 1;           ///< elements of a block; 1: not quantised
  std::uint64_t block_bytes = 1;              ///< bytes of a block
  std::optional<DType> dtype = std::nullopt;  ///< nothing: quantised
};

/// The type with this `number`, which lives for ever; nullptr for those that were removed from ggml
/// or never are in files.
const GgmlType* find_ggml_type(std::uint32_t number);
/// The type called `name`, which lives for ever; nullptr for those that were removed from ggml or
/// never are in files.
const GgmlType* find_ggml_type(std::string_view name);
/// The type whose elements are of the type `dtype`, which lives for ever; nullptr if there is none.
const GgmlType* ggml_type_of(DType dtype);

/// Types of metadata values, by their numbers in files.
enum class GgufType : std::uint32_t {
  kUint8,
  kInt8,
  kUint16,
  kInt16,
  kUint32,
  kInt32,
  kFloat32,
  kBool,
  kString,
  kArray,
  kUint64,
  kInt64,
  kFloat64,
};

/// How many types there are: numbers are below.
inline constexpr std::uint32_t kGgufTypes = 13;

/// The name of `type`: "UINT8", "STRING", …
std::string_view gguf_type_name(GgufType type);

/// Bytes of a value of `type`; 0 if they differ from value to value: kString and kArray.
std::uint64_t gguf_type_bytes(GgufType type);

}  // namespace masque::store
