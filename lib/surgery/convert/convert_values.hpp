// Where the bytes of a converted tensor come from: another element type, rows and columns swapped.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "store/checkpoint.hpp"
#include "store/numpy/unpacked_tensor.hpp"
#include "store/transfer.hpp"

namespace masque::surgery {

/// What to do with values that the new type cannot hold: finite ones beyond its largest, and
/// infinities where it has none.
enum class OverflowPolicy {
  kRefuse,    ///< InputError with the first tensor, by name
  kSaturate,  ///< the largest finite value of the type
};

/// The first tensor that overflowed, by name, noted by whichever thread saw it.
class Overflow {
 public:
  /// Notes the name `tensor`. Thread-safe.
  void note(const std::string& tensor);
  /// Of the names noted the first in order of bytes; empty: none. Not while others note.
  const std::string& first() const { return first_; }

 private:
  std::mutex mutex_;
  std::string first_;
};

/// Fills `out` with bytes of a tensor from byte `offset` of it. Thread-safe.
using ReadFunction = std::function<void(std::uint64_t offset, MutableBytes out)>;

/// Returns what reads `tensor`, one of `checkpoint`, as it is. Both must outlive the function.
ReadFunction plain_values(const store::Checkpoint& checkpoint, const store::TensorInfo& tensor);

/// Returns what reads `tensor` [rows, columns], one of `checkpoint`, as [columns, rows]: whole in
/// memory, by way of `last`. Both must outlive the function. A MASQUE_CHECK: it is a matrix of
/// elements of whole bytes.
ReadFunction transposed_values(const store::Checkpoint& checkpoint, const store::TensorInfo& tensor,
                               std::shared_ptr<store::UnpackedTensor> last);

/// Returns the elements of the type `from` that `read` reads, rounded once, to nearest even, to the
/// type `to`, which can be encoded. `policy` says what becomes of values that it cannot hold;
/// `name` is what an overflow is noted as; `overflow` must outlive the source. Memory: a few MiB a
/// thread.
store::Computed converted_values(ReadFunction read, DType from, DType to, OverflowPolicy policy,
                                 const std::string& name, Overflow& overflow);

}  // namespace masque::surgery
