// Two checkpoints side by side, and the hash that tells whether they are the same.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "store/tensor_stats.hpp"
#include "store/transfer.hpp"

namespace masque::store {

/// What differs about a tensor.
enum class ChangeKind { kOnlyA, kOnlyB, kDtype, kShape, kValues };

/// "only-a", "only-b", "dtype", "shape", "values".
const char* change_name(ChangeKind kind);

/// A tensor that is not the same in both.
struct TensorChange {
  std::string name;
  ChangeKind kind;
  const TensorInfo* a = nullptr;  ///< nullptr if it is not in A
  const TensorInfo* b = nullptr;
  TensorDiff diff;  ///< of kDtype and kValues; of opaque tensors `count` and `first` are in bytes
  const OpaqueTensor* opaque_a = nullptr;  ///< instead of a, if it has no DType
  const OpaqueTensor* opaque_b = nullptr;
};

/// How tensors of two checkpoints are matched.
enum class NameMatch {
  kExact,   ///< by name
  kFamily,  ///< by canonical_name: with or without base prefix, old and new names of layer norms
};

struct CompareOptions {
  Tolerance tolerance;
  NameMatch names = NameMatch::kExact;
  int threads = 0;
  ProgressFunction progress;  ///< called with the bytes compared
};

/// All changes, by name. It does not matter in which file a tensor is. With a tolerance a dtype
/// alone is a change still. Throws InputError if two tensors of one checkpoint have one canonical
/// name.
std::vector<TensorChange> compare_checkpoints(const Checkpoint& a, const Checkpoint& b,
                                              const CompareOptions& options);

/// The first opaque tensor of either that the other has not got with the same type, shape and
/// bytes; nothing if there is none.
std::optional<std::string> different_opaque(const Checkpoint& a, const Checkpoint& b);

/// Hashes of all tensors and of the whole.
struct CheckpointHash {
  std::vector<std::string> tensors;  ///< in the order of checkpoint.tensors(), then of opaque()
  /// Over name (as JSON), dtype, shape and hash of every tensor, a line each, by name: equal for
  /// equal tensors, whatever their order, shards and metadata.
  std::string total;
};

CheckpointHash hash_checkpoint(const Checkpoint& checkpoint, HashKind kind, int threads,
                               const ProgressFunction& progress);

}  // namespace masque::store
