// The index of a TensorFlow bundle that is written: one data file, every tensor whole.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tensor/dtype.hpp"

namespace masque::store {

/// A tensor of an index.
struct BundleItem {
  std::string name;            ///< its key
  std::uint64_t type = 0;      ///< TensorFlow's number
  Shape shape;                 ///< elements in each dimension
  std::uint64_t offset = 0;    ///< first byte in the data file
  std::uint64_t size = 0;      ///< bytes
  std::uint32_t checksum = 0;  ///< masked CRC-32C
};

/// The file PREFIX.index with these `items`, byte by byte as TensorFlow 2 writes it. They are
/// sorted by the bytes of their names, which differ and are not empty (a MASQUE_CHECK).
std::string write_bundle_index(const std::vector<BundleItem>& items);

}  // namespace masque::store
