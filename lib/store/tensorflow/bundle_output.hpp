// The index of a TensorFlow bundle that is written: one data file, every tensor whole.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tensor/dtype.hpp"

namespace masque::store {

/// A tensor of an index.
struct BundleItem {
  std::string name;
  std::uint64_t type = 0;  ///< TensorFlow's number
  Shape shape;
  std::uint64_t offset = 0;  ///< in the data file
  std::uint64_t size = 0;
  std::uint32_t checksum = 0;  ///< masked CRC-32C
};

/// The file PREFIX.index, byte by byte as TensorFlow 2 writes it. Items are sorted by the bytes of
/// their names, which differ and are not empty.
std::string write_bundle_index(const std::vector<BundleItem>& items);

}  // namespace masque::store
