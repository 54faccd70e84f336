// Tensors that have to be put in order as a whole before a part of them can be read.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "store/tensor_info.hpp"

namespace masque::store {

/// The tensor that was unpacked last. All readers of a file share one, so that at most one tensor
/// of it is in memory. Whoever reads two tensors in turn unpacks each time. Thread-safe.
class UnpackedTensor {
 public:
  /// Fills all bytes of a tensor; throws InputError.
  using Fill = std::function<void(MutableBytes out)>;

  /// out ← the bytes from `offset` of the `size` ones that `fill` makes; `owner` stands for the
  /// tensor. A whole tensor is made in `out` itself.
  void read(const void* owner, std::uint64_t size, std::uint64_t offset, MutableBytes out,
            const Fill& fill);

 private:
  std::mutex mutex_;
  const void* owner_ = nullptr;
  std::shared_ptr<const std::vector<std::byte>> bytes_;
};

/// Fills all bytes of a tensor of a file; throws InputError.
using UnpackFunction = std::function<void(const InputFile& file, MutableBytes out)>;

/// Reads a tensor of `size` bytes by way of `last`.
std::shared_ptr<const TensorReader> unpacking_reader(std::uint64_t size, UnpackFunction unpack,
                                                     std::shared_ptr<UnpackedTensor> last);

}  // namespace masque::store
