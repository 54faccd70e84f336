// Numbers about tensors: moments, differences, hashes. All in fixed blocks whose results are
// combined in order, so that they do not depend on the number of threads.
#pragma once

#include <functional>
#include <string>

#include "store/checkpoint.hpp"

namespace masque::store {

/// Moments of a tensor's values; C64 counts real and imaginary parts. NaN and infinities are
/// counted and left out of everything else.
struct TensorStats {
  std::uint64_t count = 0;  ///< finite values
  double minimum = 0;
  double maximum = 0;
  double mean = 0;
  double deviation = 0;  ///< population standard deviation
  double norm = 0;       ///< Euclidean
  std::uint64_t zeros = 0;
  std::uint64_t nans = 0;
  std::uint64_t infinities = 0;
};

/// Reads a tensor once. Not for packed types. Cost O(elements); memory 1 MiB a thread.
TensorStats tensor_stats(const Checkpoint& checkpoint, const TensorInfo& tensor, int threads);

/// How far apart two elements may be and still count as equal: |a − b| ≤ absolute + relative·|b|.
struct Tolerance {
  double absolute = 0;
  double relative = 0;
};

/// Differences of two tensors of equal shape.
struct TensorDiff {
  std::uint64_t count = 0;  ///< elements that differ: in any bit, or beyond the tolerance if any
  double max_absolute = 0;  ///< largest |a − b|; infinite where only one is NaN
  double max_relative = 0;  ///< largest |a − b| / max(|a|, |b|)
  std::uint64_t first = 0;  ///< index of the first element that differs
  std::uint64_t last = 0;   ///< index of the last one
};

/// Compares element by element; types may differ. Equal types compare bits when there is no
/// tolerance. Packed types compare bytes.
TensorDiff tensor_diff(const Checkpoint& a, const TensorInfo& in_a, const Checkpoint& b,
                       const TensorInfo& in_b, Tolerance tolerance, int threads);

enum class HashKind { kSha256, kXxh3 };

/// Hash of a tensor's bytes.
std::string tensor_hash(const Checkpoint& checkpoint, const TensorInfo& tensor, HashKind kind);

/// Whether two tensors of a checkpoint have the same type, shape and bytes. Reads both up to the
/// first difference, if only the bytes may differ.
bool same_values(const Checkpoint& checkpoint, const TensorInfo& a, const TensorInfo& b);

/// Hash of the bytes of a tensor without a DType.
std::string opaque_hash(const Checkpoint& checkpoint, const OpaqueTensor& tensor, HashKind kind);

/// Hash of a run of bytes of a file.
std::string range_hash(const InputFile& file, std::uint64_t begin, std::uint64_t end,
                       HashKind kind);

}  // namespace masque::store
