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
  std::uint64_t count = 0;       ///< finite values
  double minimum = 0;            ///< NaN if there is no finite value
  double maximum = 0;            ///< NaN if there is no finite value
  double mean = 0;               ///< NaN if there is no finite value
  double deviation = 0;          ///< population standard deviation; NaN if there is no finite value
  double norm = 0;               ///< Euclidean
  std::uint64_t zeros = 0;       ///< values that are 0 or −0
  std::uint64_t nans = 0;        ///< values that are NaN
  std::uint64_t infinities = 0;  ///< values that are infinite
};

/// The moments of `tensor`, one of `checkpoint`, which it reads once with `threads` threads (≤ 0:
/// default_threads()). Not for packed types: a MASQUE_CHECK. Blocks are joined by Chan, Golub and
/// LeVeque 1979. Cost O(elements); memory 1 MiB a thread. Throws InputError and Interrupted.
TensorStats tensor_stats(const Checkpoint& checkpoint, const TensorInfo& tensor, int threads);

/// Throws InputError if an element of `tensor`, one of `checkpoint`, is NaN or infinite; integers
/// are finite. Cost and `threads` as tensor_stats().
void check_finite(const Checkpoint& checkpoint, const TensorInfo& tensor, int threads);

/// How far apart two elements may be and still count as equal: |a − b| ≤ absolute + relative·|b|.
struct Tolerance {
  double absolute = 0;  ///< in the unit of the values
  double relative = 0;  ///< in parts of |b|
};

/// Differences of two tensors of equal shape.
struct TensorDiff {
  std::uint64_t count = 0;  ///< elements that differ: in any bit, or beyond the tolerance if any
  double max_absolute = 0;  ///< largest |a − b|; infinite where only one is NaN
  double max_relative = 0;  ///< largest |a − b| / max(|a|, |b|)
  std::uint64_t first = 0;  ///< index of the first element that differs
  std::uint64_t last = 0;   ///< index of the last one
  /// ‖a − b‖ / ‖a‖ over all elements, whatever the tolerance: the root mean square of the error in
  /// parts of that of the values. 0 if nothing differs, infinite if only a is 0; NaN of types
  /// without a distance, and where an element is not finite.
  double relative_error = 0;
  /// a·b / (‖a‖ ‖b‖) over all elements; NaN if one of them is 0 everywhere, and as above.
  double cosine = 1;
};

/// Compares the tensor `in_a` of `a` with `in_b` of `b`, which has the same shape (a MASQUE_CHECK),
/// element by element with `threads` threads (≤ 0: default_threads()); types may differ. Equal
/// types compare bits when there is no `tolerance`. Two tensors of one packed type compare bytes,
/// and counts and places are then of bytes; a packed type and another, or a real and a complex
/// type, differ in all elements. Sums are in double, over blocks of elements in their order. Throws
/// InputError and Interrupted.
TensorDiff tensor_diff(const Checkpoint& a, const TensorInfo& in_a, const Checkpoint& b,
                       const TensorInfo& in_b, Tolerance tolerance, int threads);

/// Which hash: make_sha256() or make_xxh3().
enum class HashKind { kSha256, kXxh3 };

/// The hash of `kind` of the bytes of `tensor`, one of `checkpoint`, as it is read: in hexadecimal.
/// Throws InputError and Interrupted.
std::string tensor_hash(const Checkpoint& checkpoint, const TensorInfo& tensor, HashKind kind);

/// Whether the tensors `a` and `b` of `checkpoint` have the same type, shape and bytes. Reads both
/// up to the first difference, if only the bytes may differ. Throws InputError and Interrupted.
bool same_values(const Checkpoint& checkpoint, const TensorInfo& a, const TensorInfo& b);

/// The hash of `kind` of the bytes of `tensor`, one of `checkpoint` without a DType: in
/// hexadecimal. Throws InputError and Interrupted.
std::string opaque_hash(const Checkpoint& checkpoint, const OpaqueTensor& tensor, HashKind kind);

/// The hash of `kind` of bytes [`begin`, `end`) of `file`: in hexadecimal. Throws InputError and
/// Interrupted.
std::string range_hash(const InputFile& file, std::uint64_t begin, std::uint64_t end,
                       HashKind kind);

}  // namespace masque::store
