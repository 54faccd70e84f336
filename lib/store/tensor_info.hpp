// What a checkpoint says about its tensors.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/types.hpp"
#include "tensor/dtype.hpp"

namespace masque {

/// One tensor of a file. Its bytes are row-major, little-endian, without gaps.
struct TensorInfo {
  std::string name;
  DType dtype = DType::kF32;
  Shape shape;
  std::uint64_t begin = 0;  ///< first byte in its file
  std::uint64_t end = 0;    ///< one past the last
  std::size_t file = 0;     ///< which file of the checkpoint

  std::uint64_t bytes() const { return end - begin; }
  std::uint64_t elements() const { return element_count(shape).value_or(0); }
  /// Elements of one row: the product of all dimensions but the first.
  std::uint64_t row_elements() const;
};

/// Key and value pairs of a file, in file order.
using Metadata = std::vector<std::pair<std::string, std::string>>;

/// The value of a key; nullptr if absent.
const std::string* find_metadata(const Metadata& metadata, std::string_view key);

/// Sets a key, keeping its place or adding it so that sorted keys stay sorted.
void set_metadata(Metadata& metadata, std::string_view key, std::string value);

/// Removes a key if it is there.
void erase_metadata(Metadata& metadata, std::string_view key);

}  // namespace masque
