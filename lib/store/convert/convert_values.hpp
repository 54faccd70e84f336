// Where the bytes of a converted tensor come from: another element type, rows and columns swapped.
#pragma once

#include <memory>
#include <mutex>
#include <string>

#include "store/checkpoint.hpp"
#include "store/numpy/unpacked_tensor.hpp"
#include "store/transfer.hpp"

namespace masque::store {

/// What to do with finite values beyond the largest of the new type.
enum class OverflowPolicy {
  kRefuse,    ///< noted as an Overflow
  kSaturate,  ///< the largest finite value of the type
};

/// The first tensor that overflowed, by name, noted by whichever thread saw it.
class Overflow {
 public:
  void note(const std::string& tensor);
  /// Empty: none.
  const std::string& first() const { return first_; }

 private:
  std::mutex mutex_;
  std::string first_;
};

/// out ← bytes of a tensor from byte `offset` of it. Thread-safe.
using ReadFunction = std::function<void(std::uint64_t offset, MutableBytes out)>;

/// The tensor as it is. The checkpoint must outlive the function, as for all of these.
ReadFunction plain_values(const Checkpoint& checkpoint, const TensorInfo& tensor);

/// A matrix with rows and columns swapped: whole in memory, by way of `last`.
ReadFunction transposed_values(const Checkpoint& checkpoint, const TensorInfo& tensor,
                               std::shared_ptr<UnpackedTensor> last);

/// Elements rounded once, to nearest even, to a type that can be encoded. `name` is what an
/// overflow is noted as; `overflow` must outlive the source. Memory: a few MiB a thread.
Computed converted_values(ReadFunction read, DType from, DType to, OverflowPolicy policy,
                          const std::string& name, Overflow& overflow);

}  // namespace masque::store
