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

#include "base/name_table.hpp"
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

/// "identity", "zero", "interleave", "stack".
NameTable<DepthRule> depth_rules();

/// Whether added layers add nothing.
bool keeps_function(DepthRule rule);

/// A layer of the deeper model.
struct LayerCopy {
  Index from = 0;      ///< the layer whose weights it has
  bool added = false;  ///< not the first with these weights
};

/// The layers of a model with `layers` of them, from the lowest to the highest; of two towers those
/// of each. Throws UsageError for no more layers than there are, for an odd number of two towers,
/// and for what has no layer that adds nothing, where the rule wants them: shared weights, scores
/// that go from layer to layer.
std::vector<LayerCopy> deeper_layers(const model::Design& design, Index layers, DepthRule rule);

/// What a tensor of a layer becomes.
struct LayerTensor {
  model::Role role = model::Role::kOutput;  ///< of the tensor that it is a copy of
  Index layer = 0;
  std::optional<double> constant;  ///< if set: all elements are this number
};

/// Whether added layers stand in post-norm, where the norms around them change.
bool moves_norms(const model::Design& design, DepthRule rule);

/// The tensor of a role in layer `layer` of the deeper model, whose layers are `copies`.
LayerTensor layer_tensor(const model::Design& design, std::span<const LayerCopy> copies,
                         DepthRule rule, model::Role role, bool bias, Index layer);

}  // namespace masque::grow
