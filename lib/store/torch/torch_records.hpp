// The records of a PyTorch zip file, as torch writes them: sizes and CRC-32 stand after the data,
// which begin at multiples of 64.
#pragma once

#include <string>
#include <vector>

#include "base/types.hpp"

namespace masque::store {

/// A member. Its name is ASCII.
struct TorchRecord {
  std::string name;                ///< with its folder: "archive/data.pkl"
  std::uint64_t bytes = 0;         ///< of the data
  std::uint32_t crc = 0;           ///< CRC-32 of the data
  std::uint64_t header_begin = 0;  ///< byte of the local header in the file
};

/// What stands before the data of `record`: the local header, padded.
std::string write_torch_local_header(const TorchRecord& record);

/// What stands after the data of `record`; empty if it has none.
std::string write_torch_descriptor(const TorchRecord& record);

/// The directory of `records` and the end records, ZIP64 always, from byte `begin` of the file on.
std::string write_torch_directory(const std::vector<TorchRecord>& records, std::uint64_t begin);

}  // namespace masque::store
