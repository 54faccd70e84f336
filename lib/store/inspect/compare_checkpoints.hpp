// Two checkpoints side by side, and the hash that tells whether they are the same.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "store/tensor_stats.hpp"
#include "store/transfer.hpp"

namespace masque::store {

/// What differs about a tensor.
enum class ChangeKind { kOnlyA, kOnlyB, kDtype, kShape, kValues };

/// The name of `kind`: "only-a", "only-b", "dtype", "shape", "values".
const char* change_name(ChangeKind kind);

/// A tensor that is not the same in both.
struct TensorChange {
  std::string name;               ///< by which the two were matched
  ChangeKind kind;                ///< the first of its differences: shape, dtype, values
  const TensorInfo* a = nullptr;  ///< one of A's, which must live as long; nullptr: not in A
  const TensorInfo* b = nullptr;  ///< the same in B
  TensorDiff diff;  ///< of kDtype and kValues; of opaque tensors `count` and `first` are in bytes
  const OpaqueTensor* opaque_a = nullptr;  ///< instead of a, if it has no DType
  const OpaqueTensor* opaque_b = nullptr;  ///< instead of b, if it has no DType
  /// What the file of A calls the type of its elements, of decoded ones, too: "F32", "Q8_0"; empty:
  /// not in A.
  std::string type_a = {};
  std::string type_b = {};  ///< the same of B
  /// Keeps a and b where they are those of gguf_tensors(); else empty.
  std::vector<std::shared_ptr<const void>> owners = {};
};

/// How checkpoints are compared.
struct CompareOptions {
  Tolerance tolerance;  ///< of values; 0: bits of equal types
  /// Tensors are matched by this of their names; empty: by the names.
  std::function<std::string(std::string_view name)> canonical;
  /// Models of llama.cpp that run (runs_gguf) have the names and layouts of transformers, as
  /// gguf_tensors() makes them, and quantised tensors are decoded.
  bool as_transformers = false;
  int threads = 0;            ///< ≤ 0: default_threads()
  ProgressFunction progress;  ///< called with the bytes of A compared; may be empty
};

/// All changes from `a` to `b`, sorted by name, as `options` say. It does not matter in which file
/// a tensor is. With a tolerance a dtype alone is a change still. Throws InputError if two tensors
/// of one checkpoint have one canonical name, and as gguf_tensors() does. Memory: of matrices that
/// llama.cpp keeps the other way round one at a time.
std::vector<TensorChange> compare_checkpoints(const Checkpoint& a, const Checkpoint& b,
                                              const CompareOptions& options);

/// The name of the first opaque tensor of `a`, else of `b`, that the other has not got with the
/// same type, shape and bytes (by XXH3-128); nothing if there is none. Throws InputError.
std::optional<std::string> different_opaque(const Checkpoint& a, const Checkpoint& b);

/// Hashes of all tensors and of the whole.
struct CheckpointHash {
  std::vector<std::string> tensors;  ///< in the order of checkpoint.tensors(), then of opaque()
  /// Over name (as JSON), dtype, shape and hash of every tensor, a line each, by name: equal for
  /// equal tensors, whatever their order, shards and metadata.
  std::string total;
};

/// Reads all tensors of `checkpoint` once, with `threads` threads (≤ 0: default_threads()), and
/// returns their hashes of `kind`. Calls `progress`, if it is not empty, with the bytes read,
/// opaque tensors left out. Throws InputError and Interrupted.
CheckpointHash hash_checkpoint(const Checkpoint& checkpoint, HashKind kind, int threads,
                               const ProgressFunction& progress);

}  // namespace masque::store
