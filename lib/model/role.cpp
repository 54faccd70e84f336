#include "model/role.hpp"

#include "base/error.hpp"
#include "model/variants.hpp"

namespace masque::model {

namespace {

/// Width of the states that the vocabulary matrix sees.
Index head_width(const Design& design) {
  const bool narrow = design.head.transform && !has_one_number(design.head.kind);
  return narrow ? design.embedding_size : last_width(design);
}

Index decoder_rows(const Design& design) {
  return has_one_number(design.head.kind) ? 1 : design.vocab_size;
}

/// Rows of DeBERTa's table of relative positions.
Index relative_rows(const Design& design) {
  if (design.position != PositionType::kDisentangled)
    return design.relative_buckets + design.unused_relative_rows;
  return 2 *
         (design.position_buckets > 0 ? design.position_buckets : design.max_relative_positions);
}

RoleShape table_shape(const Design& design, Role role) {
  const Index width = design.num_attention_heads * design.head_size;
  switch (role) {
    case Role::kWordTable: return {design.vocab_size, design.embedding_size};
    case Role::kPositionTable:
      return {design.max_position_embeddings + design.position_offset,
              design.positions_after_projection ? design.hidden_size : design.embedding_size};
    case Role::kSegmentTable: return {design.type_vocab_size, design.embedding_size};
    case Role::kQueryStart: return {1, design.hidden_size};
    case Role::kLatePositions: return {design.max_position_embeddings, design.hidden_size};
    case Role::kRelativeTable:
      return {relative_rows(design), design.position == PositionType::kDisentangled
                                         ? design.hidden_size
                                         : design.num_attention_heads};
    case Role::kContentBias:
    case Role::kPositionBias:
    case Role::kSegmentBias: return {1, width};
    case Role::kLayerSegmentTable: return {2, width};
    case Role::kGatedGamma:
    case Role::kGatedBeta: return {2, design.attention_key_size};
    case Role::kTalkingBefore: return {softmax_heads(design), design.num_attention_heads};
    case Role::kTalkingAfter: return {value_heads(design), softmax_heads(design)};
    default: break;
  }
  MASQUE_CHECK(false);
}

}  // namespace

TokenId begin_of_target(const SourceDesign& source, TokenId last) {
  if (source.begins_with_last) return last;
  if (source.start_token_id) return static_cast<TokenId>(*source.start_token_id);
  throw InputError(
      "config.json has no decoder_start_token_id, expected one: it begins each target");
}

bool same_design(const Design& a, const Design& b) {
  Design like_b = a;
  like_b.family = b.family;
  like_b.model_type = b.model_type;
  like_b.notes = b.notes;
  like_b.missing_head = b.missing_head;
  if (head_value_size(a) == head_value_size(b)) like_b.value_size = b.value_size;
  if (a.position_offset == 0 && b.position_offset == 0) like_b.pad_token_id = b.pad_token_id;
  return like_b == b;
}

namespace {

/// Elements of a norm of queries or keys that have so many heads.
Index head_norm_size(const Design& design, Index heads) {
  return design.query_key_norm == QueryKeyNorm::kHead ? design.head_size : heads * design.head_size;
}

}  // namespace

RoleShape role_shape(const Design& design, Role role, Index part) {
  const Index hidden = design.hidden_size;
  const Index inner = design.intermediate_size;
  const Index width = design.num_attention_heads * design.head_size;
  const Index key_width = design.num_key_value_heads * design.head_size;
  const Index value_size = head_value_size(design);
  switch (role) {
    case Role::kPositionPart:
    case Role::kSharedPositionPart: {
      const nn::PositionParameter own =
          position_parameters(design).at(static_cast<std::size_t>(part));
      return {own.rows, own.columns};
    }
    case Role::kMixerPart: {
      const nn::MixerParameter own = mixer_parameters(design).at(static_cast<std::size_t>(part));
      return {own.rows, own.columns};
    }
    case Role::kQuery:
    case Role::kSourceQuery:
    case Role::kRelative:
    case Role::kPositionKey:
    case Role::kPositionQuery:
    case Role::kGlobalQuery:
    case Role::kGlobalKey:
    case Role::kGlobalValue: return {width, hidden};
    case Role::kKey:
    case Role::kSourceKey: return {key_width, hidden};
    case Role::kValue:
    case Role::kSourceValue: return {projected_value_heads(design) * value_size, hidden};
    case Role::kOutput:
    case Role::kSourceOutput: return {hidden, context_width(design)};
    case Role::kUp:
    case Role::kGate: return {inner, hidden};
    case Role::kDown: return {hidden, inner};
    case Role::kConvolution: return {hidden, hidden * design.convolution_size};
    case Role::kGatedInput: return {2 * inner + design.attention_key_size, hidden};
    case Role::kEmbeddingProjection: return {hidden, design.embedding_size};
    case Role::kHeadTransform: return {head_width(design), last_width(design)};
    case Role::kDecoder: return {decoder_rows(design), head_width(design)};
    case Role::kEmbeddingNorm: return {1, design.embedding_size};
    case Role::kHeadNorm: return {1, head_width(design)};
    case Role::kAttentionNorm:
    case Role::kFeedForwardNorm:
    case Role::kSourceNorm:
    case Role::kConvolutionNorm:
    case Role::kRelativeNorm:
    case Role::kAttentionOutputNorm:
    case Role::kFeedForwardOutputNorm:
    case Role::kAttentionResidual:
    case Role::kFeedForwardResidual:
    case Role::kFinalNorm: return {1, hidden};
    case Role::kFeedForwardInnerNorm: return {1, inner};
    case Role::kQueryNorm: return {1, head_norm_size(design, design.num_attention_heads)};
    case Role::kKeyNorm: return {1, head_norm_size(design, design.num_key_value_heads)};
    case Role::kRouter: return {design.experts.value().count, hidden};
    case Role::kExpertUp:
    case Role::kExpertGate: return {design.experts.value().intermediate_size, hidden};
    case Role::kExpertDown: return {hidden, design.experts.value().intermediate_size};
    case Role::kSharedExpertUp:
    case Role::kSharedExpertGate: return {design.experts.value().shared_intermediate_size, hidden};
    case Role::kSharedExpertDown: return {hidden, design.experts.value().shared_intermediate_size};
    case Role::kSharedExpertWeight: return {1, hidden};
    case Role::kSinks: return {1, design.num_attention_heads};
    case Role::kLatentInput: return {design.variants.latent.value().size, hidden};
    case Role::kLatentOutput: return {hidden, design.variants.latent.value().size};
    case Role::kLatentKappa: return {1, 1};
    case Role::kHeadScale: return {1, value_heads(design)};
    case Role::kScoreScale: return {1, design.num_attention_heads};
    case Role::kAttentionScale:
    case Role::kFeedForwardScale: return {1, 1};
    default: return table_shape(design, role);
  }
}

bool is_norm(Role role) {
  return (role >= Role::kEmbeddingNorm && role <= Role::kHeadNorm) ||
         role == Role::kAttentionOutputNorm || role == Role::kFeedForwardOutputNorm ||
         role == Role::kFeedForwardInnerNorm || role == Role::kQueryNorm ||
         role == Role::kKeyNorm || role == Role::kSourceNorm;
}

bool is_of_experts(Role role) { return role >= Role::kRouter && role <= Role::kSharedExpertWeight; }

bool is_vector(Role role) {
  return is_norm(role) || role == Role::kSinks || role == Role::kQueryStart ||
         role == Role::kContentBias || role == Role::kPositionBias || role == Role::kSegmentBias ||
         role == Role::kLatentKappa || (role >= Role::kAttentionScale && role <= Role::kScoreScale);
}

namespace {

template <class T>
DenseWeights<T>* dense_of(ModelWeights<T>& weights, LayerWeights<T>& layer, Role role) {
  switch (role) {
    case Role::kQuery: return &layer.query;
    case Role::kKey: return &layer.key;
    case Role::kValue: return &layer.value;
    case Role::kOutput: return &layer.output;
    case Role::kSourceQuery: return &layer.source_query;
    case Role::kSourceKey: return &layer.source_key;
    case Role::kSourceValue: return &layer.source_value;
    case Role::kSourceOutput: return &layer.source_output;
    case Role::kUp: return &layer.up;
    case Role::kGate: return &layer.gate;
    case Role::kDown: return &layer.down;
    case Role::kRelative: return &layer.relative;
    case Role::kPositionKey: return &layer.position_key;
    case Role::kPositionQuery: return &layer.position_query;
    case Role::kGlobalQuery: return &layer.global_query;
    case Role::kGlobalKey: return &layer.global_key;
    case Role::kGlobalValue: return &layer.global_value;
    case Role::kConvolution: return &layer.convolution;
    case Role::kGatedInput: return &layer.gated_input;
    case Role::kRouter: return &layer.router;
    case Role::kSharedExpertUp: return &layer.shared_expert_up;
    case Role::kSharedExpertGate: return &layer.shared_expert_gate;
    case Role::kSharedExpertDown: return &layer.shared_expert_down;
    case Role::kSharedExpertWeight: return &layer.shared_expert_weight;
    case Role::kEmbeddingProjection: return &weights.embedding_projection;
    case Role::kHeadTransform: return &weights.head_transform;
    case Role::kDecoder: return &weights.decoder;
    default: return nullptr;
  }
}

template <class T>
std::vector<DenseWeights<T>>* experts_of(LayerWeights<T>& layer, Role role) {
  switch (role) {
    case Role::kExpertUp: return &layer.expert_up;
    case Role::kExpertGate: return &layer.expert_gate;
    case Role::kExpertDown: return &layer.expert_down;
    default: return nullptr;
  }
}

template <class T>
NormWeights<T>* norm_of(ModelWeights<T>& weights, LayerWeights<T>& layer, Role role) {
  switch (role) {
    case Role::kEmbeddingNorm: return &weights.embedding_norm;
    case Role::kAttentionNorm: return &layer.attention_norm;
    case Role::kFeedForwardNorm: return &layer.feed_forward_norm;
    case Role::kSourceNorm: return &layer.source_norm;
    case Role::kConvolutionNorm: return &layer.convolution_norm;
    case Role::kAttentionOutputNorm: return &layer.attention_output_norm;
    case Role::kFeedForwardOutputNorm: return &layer.feed_forward_output_norm;
    case Role::kFeedForwardInnerNorm: return &layer.feed_forward_inner_norm;
    case Role::kQueryNorm: return &layer.query_norm;
    case Role::kKeyNorm: return &layer.key_norm;
    case Role::kRelativeNorm: return &weights.relative_norm;
    case Role::kFinalNorm: return &weights.final_norm;
    case Role::kHeadNorm: return &weights.head_norm;
    default: return nullptr;
  }
}

template <class T>
Weight<T>* single_of(ModelWeights<T>& weights, LayerWeights<T>& layer, Role role) {
  switch (role) {
    case Role::kWordTable: return &weights.word_table;
    case Role::kPositionTable: return &weights.position_table;
    case Role::kSegmentTable: return &weights.segment_table;
    case Role::kQueryStart: return &weights.query_start;
    case Role::kLatePositions: return &weights.late_positions;
    case Role::kRelativeTable: return &weights.relative_table;
    case Role::kContentBias: return &layer.content_bias;
    case Role::kPositionBias: return &layer.position_bias;
    case Role::kSegmentBias: return &layer.segment_bias;
    case Role::kLayerSegmentTable: return &layer.segment_table;
    case Role::kGatedGamma: return &layer.gated_gamma;
    case Role::kGatedBeta: return &layer.gated_beta;
    case Role::kTalkingBefore: return &layer.talking_before;
    case Role::kTalkingAfter: return &layer.talking_after;
    case Role::kAttentionScale: return &layer.attention_scale;
    case Role::kFeedForwardScale: return &layer.feed_forward_scale;
    case Role::kAttentionResidual: return &layer.attention_residual;
    case Role::kFeedForwardResidual: return &layer.feed_forward_residual;
    case Role::kHeadScale: return &layer.head_scale;
    case Role::kScoreScale: return &layer.score_scale;
    case Role::kSinks: return &layer.sinks;
    case Role::kLatentInput: return &layer.latent_input;
    case Role::kLatentOutput: return &layer.latent_output;
    case Role::kLatentKappa: return &layer.latent_kappa;
    default: return nullptr;
  }
}

/// Element `part` of `parts`, which become as many as it needs.
template <class Part>
Part& element_of(std::vector<Part>& parts, Index part) {
  MASQUE_CHECK(part >= 0);
  if (part >= std::ssize(parts)) parts.resize(static_cast<std::size_t>(part) + 1);
  return parts[static_cast<std::size_t>(part)];
}

template <class T>
std::vector<Weight<T>>* parts_of(ModelWeights<T>& weights, LayerWeights<T>& layer, Role role) {
  switch (role) {
    case Role::kPositionPart: return &layer.position;
    case Role::kSharedPositionPart: return &weights.position;
    case Role::kMixerPart: return &layer.mixer;
    default: return nullptr;
  }
}

}  // namespace

bool is_dense(Role role) {
  static ModelWeights<float> weights;
  static LayerWeights<float> layer;
  return dense_of(weights, layer, role) != nullptr || experts_of(layer, role) != nullptr;
}

template <class T>
Weight<T>& weight_of(ModelWeights<T>& weights, Role role, bool bias, Index layer, Index part) {
  MASQUE_CHECK(layer >= 0 && layer < static_cast<Index>(weights.layers.size()));
  LayerWeights<T>& own = weights.layers[static_cast<std::size_t>(layer)];
  if (DenseWeights<T>* dense = dense_of(weights, own, role)) {
    return bias ? dense->bias : dense->weight;
  }
  if (NormWeights<T>* norm = norm_of(weights, own, role)) return bias ? norm->bias : norm->weight;
  if (std::vector<DenseWeights<T>>* experts = experts_of(own, role)) {
    DenseWeights<T>& dense = element_of(*experts, part);
    return bias ? dense.bias : dense.weight;
  }
  if (std::vector<Weight<T>>* parts = parts_of(weights, own, role)) {
    MASQUE_CHECK(!bias);
    return element_of(*parts, part);
  }
  Weight<T>* single = single_of(weights, own, role);
  MASQUE_CHECK(single != nullptr && !bias);
  return *single;
}

template Weight<float>& weight_of(ModelWeights<float>&, Role, bool, Index, Index);
template Weight<double>& weight_of(ModelWeights<double>&, Role, bool, Index, Index);

}  // namespace masque::model
