// Tensors that have to be put in order as a whole before a part of them can be read.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "store/numpy/npz.hpp"
#include "store/tensor_info.hpp"

namespace masque::store {

/// The tensor that was unpacked last. All readers of a file share one, so that at most one tensor
/// of it is in memory. Whoever reads two tensors in turn unpacks each time. Thread-safe.
class UnpackedTensor {
 public:
  /// Fills `out` with all bytes of a tensor; throws InputError.
  using Fill = std::function<void(MutableBytes out)>;

  /// Fills `out` with the bytes from `offset` on of the `size` ones that `fill` makes; `owner`
  /// stands for the tensor: no other tensor may have the same one before forget(owner). A whole
  /// tensor is made in `out` itself. Throws what `fill` throws.
  void read(const void* owner, std::uint64_t size, std::uint64_t offset, MutableBytes out,
            const Fill& fill);
  /// Drops the bytes of the tensor that `owner` stands for, if it was the last one.
  void forget(const void* owner);

 private:
  std::mutex mutex_;
  const void* owner_ = nullptr;
  std::shared_ptr<const std::vector<std::byte>> bytes_;
};

/// Fills `out` with all bytes of a tensor of `file`; throws InputError.
using UnpackFunction = std::function<void(const InputFile& file, MutableBytes out)>;

/// Makes a reader of a tensor of `size` bytes that `unpack` makes, by way of `last`.
std::shared_ptr<const TensorReader> unpacking_reader(std::uint64_t size, UnpackFunction unpack,
                                                     std::shared_ptr<UnpackedTensor> last);

// The elements of an npy that do not lie in its file as tensors are read.

/// What reads the elements of an npy file with this `header`; nullptr: they lie in order.
std::shared_ptr<const TensorReader> npy_reader(const NpyHeader& header);

/// What reads the elements of `member` of an npz, an npy with this `header`; nullptr: they lie in
/// order. Deflated members and column-major ones are read through `last`, whole, and their CRC is
/// then compared.
std::shared_ptr<const TensorReader> npz_reader(const NpyHeader& header, const ZipMember& member,
                                               const std::shared_ptr<UnpackedTensor>& last);

}  // namespace masque::store
