// The parts of a PyTorch zip file that is written: the pickle of its state dict, and its records.
#pragma once

#include <string>
#include <vector>

#include "base/types.hpp"
#include "tensor/dtype.hpp"

namespace masque::store {

// The records of a PyTorch zip file, as torch writes them: sizes and CRC-32 stand after the data,
// which begin at multiples of 64.

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

// The pickle of a state dict, as torch.save writes it: protocol 2.

/// A tensor to be named in a pickle: row-major, all of its storage.
struct PickledTensor {
  std::string name;           ///< its key in the state dict
  DType dtype = DType::kF32;  ///< type of the elements: is_torch_dtype
  Shape shape;                ///< as torch counts: of a packed type the bytes of the last dimension
  std::size_t storage = 0;    ///< its key
};

/// Whether torch has the element type `dtype`.
bool is_torch_dtype(DType dtype);

/// The pickle of an OrderedDict of the `tensors`. Types that every torch knows are written as since
/// 0.4, the others as since 2.1. The same tensors give the same bytes.
std::string write_torch_pickle(const std::vector<PickledTensor>& tensors);

}  // namespace masque::store
