// The steps of load_model: names, then bytes.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "model/checkpoint/placed.hpp"
#include "store/checkpoint.hpp"
#include "store/names/named_tensors.hpp"

namespace masque::model {

/// A tensor of the checkpoint and where it goes. Sizes of file and design agree.
struct TensorPlan {
  const store::TensorInfo* info = nullptr;  ///< in the Checkpoint, which must live as long
  PlacedTensor placed;                      ///< its places in the model
};

/// Which tensors make the model.
struct LoadPlan {
  Design design;                    ///< with the head that is there, and notes
  std::vector<TensorPlan> tensors;  ///< pointers into the checkpoint
  Index layers = 0;                 ///< different ones: count_layers()
  std::vector<std::string> unused;  ///< names of tensors that no role took
};

/// Finds every tensor of `model` in `checkpoint`, by name and shape. `names` are the checkpoint's.
/// No weights are read, but for a tied decoder that the file has, too: it is compared with the word
/// table. The result points into `checkpoint`. Throws InputError for a tensor that is missing, or
/// of another shape, or whose type is not floating-point, for a stored table that has other numbers
/// than are computed instead of it, and for an adapter of PEFT next to the weights.
LoadPlan find_tensors(const ModelPlan& model, const store::Checkpoint& checkpoint,
                      const store::NamedTensors& names);

/// The tensor of the word table in `plan`.
const store::TensorInfo& word_table_of(const LoadPlan& plan);

/// Whether load_pair() of `path` with `options` reads two parts: the family has a decoder, and the
/// checkpoint tensors of it. No weights are read. Throws InputError as that does, for what cannot
/// be read.
bool is_encoder_decoder(const std::string& path, const LoadOptions& options = {});

/// The old spelling of `name`, a layer norm's tensor, "LayerNorm.gamma" of "LayerNorm.weight",
/// which checkpoints converted from TensorFlow have; empty for any other name.
std::string old_norm_name(const std::string& name);

/// "[3,17]": the place of the element `flat`, counted row by row, of a tensor of the `shape`.
std::string place_text(const Shape& shape, std::uint64_t flat);

/// Compares the sums that `checkpoint`, a TensorFlow bundle, has of its tensors, all of which it
/// reads; other checkpoints have none. Throws InputError if one differs.
void check_bundle_sums(const store::Checkpoint& checkpoint);

/// Reads the tensors of `plan` from `checkpoint`, in parallel. Tensors of the type T as the model
/// has them point into the mapped files, which the result keeps mapped. With a `later`, the
/// checkpoint too, large matrices are left to it (LoadOptions::later), which then lives as long as
/// the result; of these the word table and the decoder are read here all the same, to check them.
/// Throws InputError for the first (in plan order) that holds something that is not finite.
template <class T>
ModelWeights<T> read_tensors(const LoadPlan& plan, const store::Checkpoint& checkpoint,
                             const std::shared_ptr<const store::Checkpoint>& later = nullptr);

}  // namespace masque::model
