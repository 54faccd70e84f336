// The steps of load_model: names, then bytes.
#pragma once

#include <string>
#include <vector>

#include "model/checkpoint/placed.hpp"
#include "store/checkpoint.hpp"
#include "store/names/named_tensors.hpp"

namespace masque::model {

/// A tensor of the checkpoint and where it goes. Sizes of file and design agree.
struct TensorPlan {
  const store::TensorInfo* info = nullptr;
  PlacedTensor placed;
};

/// Which tensors make the model.
struct LoadPlan {
  Design design;                    ///< with the head that is there, and notes
  std::vector<TensorPlan> tensors;  ///< pointers into the checkpoint
  Index layers = 0;                 ///< different ones
  std::vector<std::string> unused;
};

/// Finds every tensor of a model in a checkpoint, by name and shape; nothing is read. `names` are
/// the checkpoint's. Throws InputError.
LoadPlan find_tensors(const ModelPlan& model, const store::Checkpoint& checkpoint,
                      const store::NamedTensors& names);

/// The old spelling of a layer norm's tensor, "LayerNorm.gamma" of "LayerNorm.weight", which
/// checkpoints converted from TensorFlow have; empty for any other name.
std::string old_norm_name(const std::string& name);

/// Compares the sums that a TensorFlow bundle has of its tensors; other checkpoints have none.
/// Throws InputError if one differs.
void check_bundle_sums(const store::Checkpoint& checkpoint);

/// Reads the tensors, in parallel. Throws InputError for the first (in plan order) that holds
/// something that is not finite.
template <class T>
ModelWeights<T> read_tensors(const LoadPlan& plan, const store::Checkpoint& checkpoint);

}  // namespace masque::model
