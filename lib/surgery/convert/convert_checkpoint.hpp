// From one layout of a checkpoint to another: format, element type, names, shards, one file.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "store/checkpoint.hpp"
#include "store/checkpoint_writer.hpp"
#include "store/numpy/unpacked_tensor.hpp"
#include "store/transfer.hpp"

namespace masque::surgery {

// Where the bytes of a converted tensor come from: another element type, rows and columns swapped.

/// What to do with values that the new type cannot hold: finite ones beyond its largest, and
/// infinities where it has none.
enum class OverflowPolicy {
  kRefuse,    ///< noted as an Overflow
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

/// Which names tensors get.
enum class NameStyle {
  kKeep,      ///< those that they have
  kHf,        ///< those of transformers: see store/names/name_rules.hpp
  kTf,        ///< those of Google's TensorFlow checkpoints: see store/tensorflow/tf_plan.hpp
  kVariable,  ///< those of the variables of a TensorFlow 2 object graph: see
              ///< store/tensorflow/object_graph.hpp
};

/// What a conversion changes, and how it writes.
struct ConvertRequest {
  std::string format;                        ///< a writer's name; empty: see convert_checkpoint
  std::optional<DType> dtype;                ///< for floating-point tensors; others keep theirs
  std::optional<std::uint64_t> shard_bytes;  ///< most bytes of a shard; absent: one file
  OverflowPolicy overflow = OverflowPolicy::kRefuse;  ///< values that `dtype` cannot hold
  NameStyle names = NameStyle::kKeep;                 ///< of tensors in the output
  bool strict = false;        ///< names that no table knows: nothing is written
  bool skip_opaque = false;   ///< leaves tensors without a DType out, each with a note
  store::WriteOptions write;  ///< its input and verify are set by convert_checkpoint
};

/// What a conversion did.
struct ConvertResult {
  std::uint64_t tensors = 0;    ///< in the output, opaque ones too
  std::uint64_t converted = 0;  ///< of these, with a new dtype
  std::uint64_t renamed = 0;    ///< of these, with a new name
  std::uint64_t files = 0;      ///< files of weights
  std::vector<std::string>
      unknown;                     ///< names that no table knows: kept, or, if strict, all there is
  std::vector<std::string> notes;  ///< for users, each one line
};

/// Converts `in` to `out` as `request` says: a file if `out` has an extension of a writer, else a
/// folder. The format is that of the extension; for a folder the one requested, else the input's if
/// it can be written, else safetensors. From a folder to a folder every other file is copied, and
/// config.json's `dtype` or `torch_dtype` follows. With new names that are or were TensorFlow's the
/// config gets the name and the fields that go with them. Values are rounded once, to nearest even.
/// Tensors keep their order unless all files were in the reference writer's order, in which the
/// output then is too. Markers are kept wherever the format has its place for them (store/markers),
/// other metadata where it has one. Tensors without a DType go only into a file of their own
/// format. Tensors that share their bytes: see store/convert/aliases.hpp. Memory: a few MiB a
/// thread, and the largest tensor where one has to be unpacked or transposed. Throws UsageError and
/// InputError; `out` is then as it was.
ConvertResult convert_checkpoint(const std::string& in, const std::string& out,
                                 const ConvertRequest& request);

}  // namespace masque::surgery
