// config.json of the family `masque`: the keys that family/masque.cpp reads.
#include "model/checkpoint/config_text.hpp"
#include "model/masque_names.hpp"
#include "model/rotary_config.hpp"

namespace masque::model {
namespace {

void add_sizes(const Design& design, ConfigText& to) {
  to.member("vocab_size", design.vocab_size);
  to.member("hidden_size", design.hidden_size);
  to.member("embedding_size", design.embedding_size);
  to.member("num_hidden_layers", design.num_hidden_layers);
  to.member("num_attention_heads", design.num_attention_heads);
  if (design.layer_kind == LayerKind::kGatedAttention) {
    to.member("attention_key_size", design.attention_key_size);
  } else {
    to.member("num_key_value_heads", design.num_key_value_heads);
    to.member("head_size", design.head_size);
    to.member("value_size", head_value_size(design));
  }
  to.member("intermediate_size", design.intermediate_size);
  to.member("type_vocab_size", design.type_vocab_size);
  to.member("max_position_embeddings", design.max_position_embeddings);
  to.member("pad_token_id", design.pad_token_id);
  to.member("mask_token_id", design.mask_token_id);
}

void add_layer(const Design& design, ConfigText& to) {
  to.member("layer_kind", word_of(kLayerKinds, design.layer_kind));
  to.member("norm_placement", word_of(kNormPlacements, design.norm_placement));
  to.member("norm", word_of(kNorms, design.norm.kind));
  to.member("layer_norm_eps", design.norm.epsilon);
  to.member("norm_weights", design.norm_weights);
  to.member("embedding_norm", design.embedding_norm.has_value());
  to.member("final_norm", design.final_norm);
  to.member("residual_scale", design.variants.residual_scale);
  if (!design.variants.input_residual) to.member("input_residual", false);
  if (design.variants.late_positions > 0)
    to.member("late_positions", design.variants.late_positions);
  to.member("use_bias", design.use_bias);
  to.member("hidden_act", word_of(kActivations, design.activation));
  to.member("gated", design.gated);
  to.member("embedding_scale", design.embedding_scale);
}

void add_attention(const Design& design, ConfigText& to) {
  const LayerDesign layer = design.layers.empty() ? LayerDesign{} : design.layers[0];
  const VariantDesign& variants = design.variants;
  if (variants.position.empty()) {
    to.member("position_embedding_type", word_of(kPositionTypes, design.position));
    if (design.position == PositionType::kSinusoidal) {
      to.member("sinusoidal_interleaved", design.sinusoidal_interleaved);
    }
    if (design.position == PositionType::kRotary) {
      to.member("rotary_interleaved", layer.rotary.layout == kernel::RotaryLayout::kAdjacent);
      // Other angles than plain ones are not read back, so that this family is not taken.
      to.member("rope_theta", rotary_base(layer.rotary.frequencies, 0).value_or(10000));
    }
  } else {
    to.member("position", variants.position);
    to.member("position_shared", variants.position_shared);
  }
  if (layer.window) to.member("window", *layer.window);
  to.member("normalizer", design.normalizer);
  to.member("attention_scale", design.attention_scale);
  to.member("talking_heads", word_of(kTalkingHeads, variants.talking_heads));
  if (variants.softmax_heads > 0) to.member("softmax_heads", variants.softmax_heads);
  if (variants.value_heads > 0) to.member("value_heads", variants.value_heads);
  if (variants.largest_keys > 0) to.member("largest_keys", variants.largest_keys);
  to.member("previous_scores", word_of(kPreviousScores, variants.previous_scores));
  if (!variants.mixer.empty()) {
    to.member("mixer", variants.mixer);
    to.member("mixer_inner_size", variants.mixer_inner_size);
    to.member("mixer_attention_size", variants.mixer_attention_size);
    to.member("mixer_kernel_size", variants.mixer_kernel_size);
    to.member("mixer_dilation", variants.mixer_dilation);
    to.member("mixer_chunk_size", variants.mixer_chunk_size);
  }
  to.member("mask", mask_word(design));
  to.member("streams", word_of(kStreams, design.streams));
  if (variants.detector) to.raw_member("detector", detector_json(*variants.detector));
  if (variants.latent) to.raw_member("latent", latent_json(*variants.latent));
}

void add_head(const HeadDesign& head, ConfigText& to) {
  to.member("head", word_of(kHeads, head.kind));
  if (head.kind == HeadKind::kNone) return;
  to.member("head_transform", head.transform);
  if (head.transform) to.member("head_act", word_of(kActivations, head.activation));
  to.member("head_norm", head.norm.has_value());
  to.member("tie_word_embeddings", head.tied);
  to.member("head_scale", head.scale);
}

}  // namespace

std::optional<std::string> masque_config(const Design& design, const TrainingConfig& training) {
  const bool spelled =
      !word_of(kActivations, design.activation).empty() &&
      (!design.head.transform || !word_of(kActivations, design.head.activation).empty()) &&
      (!design.variants.position.empty() || !word_of(kPositionTypes, design.position).empty());
  if (!spelled) return std::nullopt;
  ConfigText to;
  to.member("model_type", "masque");
  add_sizes(design, to);
  add_layer(design, to);
  add_attention(design, to);
  add_head(design.head, to);
  to.member("initializer_range", training.initializer_range);
  to.member("hidden_dropout_prob", training.hidden_dropout);
  to.member("attention_probs_dropout_prob", training.attention_dropout);
  to.member("dtype", "float32");
  return to.finish();
}

}  // namespace masque::model
