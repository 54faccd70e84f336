// The records of a PyTorch zip file, as torch writes them: sizes and CRC-32 stand after the data,
// which begin at multiples of 64.
#pragma once

#include <string>
#include <vector>

#include "base/types.hpp"

namespace masque::store {

/// A member. Its name is ASCII.
struct TorchRecord {
  std::string name;
  std::uint64_t bytes = 0;
  std::uint32_t crc = 0;
  std::uint64_t header_begin = 0;
};

/// What stands before the data: the local header, padded.
std::string write_torch_local_header(const TorchRecord& record);

/// What stands after the data; empty if nothing does.
std::string write_torch_descriptor(const TorchRecord& record);

/// The directory and the end records, ZIP64 always, from `begin` on.
std::string write_torch_directory(const std::vector<TorchRecord>& records, std::uint64_t begin);

}  // namespace masque::store
