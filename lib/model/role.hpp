// What a tensor is for: the places of ModelWeights by name, so that families are tables.
#pragma once

#include <string_view>

#include "model/design.hpp"
#include "model/weights.hpp"

namespace masque::model {

/// What a tensor is for, named as its member of LayerWeights or ModelWeights. The numbers seed the
/// values that training starts with (train/network/parameters.cpp): new roles go to the very end,
/// not into their group.
enum class Role {
  // dense layers
  kQuery,
  kKey,
  kValue,
  kOutput,
  kUp,
  kGate,
  kDown,
  kRelative,
  kPositionKey,
  kPositionQuery,
  kConvolution,
  kGatedInput,
  kEmbeddingProjection,
  kHeadTransform,
  kDecoder,
  // norms
  kEmbeddingNorm,
  kAttentionNorm,
  kFeedForwardNorm,
  kConvolutionNorm,
  kRelativeNorm,
  kFinalNorm,
  kHeadNorm,
  // single tensors
  kWordTable,
  kPositionTable,
  kSegmentTable,
  kQueryStart,
  kRelativeTable,
  kContentBias,
  kPositionBias,
  kSegmentBias,
  kLayerSegmentTable,
  kGatedGamma,
  kGatedBeta,
  kTalkingBefore,
  kTalkingAfter,
  // several tensors, distinguished by their number (TensorRow::part)
  kPositionPart,        ///< parameter of VariantDesign::position, of a layer
  kSharedPositionPart,  ///< parameter of the input, or one of all layers
  kMixerPart,
  // norms of what the parts of a layer give, and the numbers that it is multiplied by
  kAttentionOutputNorm,
  kFeedForwardOutputNorm,
  kAttentionScale,
  kFeedForwardScale,
  kAttentionResidual,  ///< what the states are multiplied by in front of the sum
  kFeedForwardResidual,
  kHeadScale,
  kScoreScale,  ///< s of each head, of a normalizer that learns it
  kFeedForwardInnerNorm,
  kLatentInput,  ///< for VariantDesign::latent: from states to the sphere, and back
  kLatentOutput,
  kLatePositions,  ///< for VariantDesign::late_positions: a row a position
  kLatentKappa,    ///< log κ of a bottleneck that learns it
  kQueryNorm,      ///< of queries (QueryKeyNorm), and of keys
  kKeyNorm,
  kGlobalQuery,  ///< Longformer's projections of tokens with global attention: see LayerWeights
  kGlobalKey,
  kGlobalValue,
  // LayerDesign::experts: dense layers, those of experts distinguished by their number
  kRouter,
  kExpertUp,
  kExpertGate,
  kExpertDown,
  kSharedExpertUp,
  kSharedExpertGate,
  kSharedExpertDown,
  kSharedExpertWeight,  ///< from states to the logit of what the shared expert is multiplied by
  kSinks,               ///< of each head, for Design::sinks
  // attention to the states of an encoder (SourceDesign)
  kSourceQuery,
  kSourceKey,
  kSourceValue,
  kSourceOutput,
  kSourceNorm,
};

/// The shape of a role's weight as (out, in); a vector is one row. The bias of a dense layer has
/// `rows` elements, that of a norm `columns`.
struct RoleShape {
  Index rows = 0;     ///< outputs
  Index columns = 0;  ///< inputs
};
/// The shape that `design` gives to the weight of `role`; `part` counts the tensors of roles that
/// have several.
RoleShape role_shape(const Design& design, Role role, Index part = 0);

/// Whether `role` is a dense layer, whose weight is a matrix that states are multiplied with.
bool is_dense(Role role);
/// Whether `role` is a norm: weight and bias are vectors.
bool is_norm(Role role);
/// Whether `role` is a projection of tokens with global attention, which no text has.
inline bool is_global(Role role) {
  return role == Role::kGlobalQuery || role == Role::kGlobalKey || role == Role::kGlobalValue;
}
/// Whether `role` belongs to a mixture of experts: layers without one have none.
bool is_of_experts(Role role);
/// Whether the weight of `role` is a vector in the file, not a matrix of one row.
bool is_vector(Role role);

/// The weight of `role` in `weights`, or with `bias` its bias, to read or to set; as valid as
/// `weights`. `layer` counts ModelWeights::layers, and must be one of them for roles of the whole
/// model, too; `part` counts the tensors of roles that have several, and makes room for them, which
/// moves those before.
template <class T>
Weight<T>& weight_of(ModelWeights<T>& weights, Role role, bool bias, Index layer, Index part = 0);

}  // namespace masque::model
