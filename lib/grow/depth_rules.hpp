// Which layers a deeper model has, and what the tensors of its added layers hold.
//
// A layer that adds nothing: its two output projections are zero, so that only its norms are left.
// Pre-norm adds zero to the residual: Wu et al. 2024, arXiv:2401.02415 (block expansion). Post-norm
// normalizes once more: with gain 1 and bias 0 in the norm before and in its own, and the former
// gain and bias in its last one, what comes out is what came out before, up to epsilon.
// Copies that do not keep the function: Gong et al. 2019 (progressive stacking), Chen et al. 2021,
// arXiv:2110.07143.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/string/name_table.hpp"
#include "model/design.hpp"
#include "model/role.hpp"

namespace masque::grow {

/// Where added layers stand, and whether they add nothing.
enum class DepthRule {
  kIdentity,    ///< after the layer that each is a copy of; adds nothing
  kZero,        ///< the stack once more, on top; adds nothing
  kInterleave,  ///< after the layer that each is a copy of; another function
  kStack,       ///< the stack once more, on top; another function
};

/// The names of all rules: "identity", "zero", "interleave", "stack".
NameTable<DepthRule> depth_rules();

/// Whether added layers of `rule` add nothing.
bool keeps_function(DepthRule rule);

/// A layer of the deeper model.
struct LayerCopy {
  Index from = 0;      ///< the layer whose weights it has
  bool added = false;  ///< not the first with these weights
};

/// The layers that a model of `design` has by `rule` if it gets `layers` of them in all, from the
/// lowest to the highest; of two towers those of each. Throws UsageError for no more layers than
/// there are; for an odd number of two towers; for latent bottlenecks, late positions, and
/// positions with parameters or learned scales of scores that only some layers have; and for what
/// has no layer that adds nothing, where the rule wants them: shared weights, scores that go from
/// layer to layer.
std::vector<LayerCopy> deeper_layers(const model::Design& design, Index layers, DepthRule rule);

/// What a tensor of a layer becomes.
struct LayerTensor {
  model::Role role = model::Role::kOutput;  ///< of the tensor that it is a copy of
  Index layer = 0;                          ///< of the small model
  std::optional<double> constant;           ///< if set: all elements are this number
};

/// Whether added layers of `rule` stand in the post-norm of `design` and add nothing: the norms
/// around them change then.
bool moves_norms(const model::Design& design, DepthRule rule);

/// What becomes the tensor of `role`, its weight or its `bias`, in layer `layer` of the deeper
/// model. `design` is that of the small model, `copies` are deeper_layers() of it by the same
/// `rule`.
LayerTensor layer_tensor(const model::Design& design, std::span<const LayerCopy> copies,
                         DepthRule rule, model::Role role, bool bias, Index layer);

}  // namespace masque::grow
