// config.json of the family `masque`: the keys that family/masque.cpp reads.
#include "model/checkpoint/config_text.hpp"
#include "model/masque_names.hpp"
#include "model/rotary_config.hpp"

namespace masque::model {
namespace {

void add_sizes(const Design& design, ConfigText& to) {
  to.count("vocab_size", design.vocab_size);
  to.count("hidden_size", design.hidden_size);
  to.count("embedding_size", design.embedding_size);
  to.count("num_hidden_layers", design.num_hidden_layers);
  to.count("num_attention_heads", design.num_attention_heads);
  if (design.layer_kind == LayerKind::kGatedAttention) {
    to.count("attention_key_size", design.attention_key_size);
  } else {
    to.count("num_key_value_heads", design.num_key_value_heads);
    to.count("head_size", design.head_size);
    to.count("value_size", head_value_size(design));
  }
  to.count("intermediate_size", design.intermediate_size);
  to.count("type_vocab_size", design.type_vocab_size);
  to.count("max_position_embeddings", design.max_position_embeddings);
  to.optional("pad_token_id", design.pad_token_id);
  to.optional("mask_token_id", design.mask_token_id);
}

void add_layer(const Design& design, ConfigText& to) {
  to.text("layer_kind", word_of(kLayerKinds, design.layer_kind));
  to.text("norm_placement", word_of(kNormPlacements, design.norm_placement));
  to.text("norm", word_of(kNorms, design.norm.kind));
  to.number("layer_norm_eps", design.norm.epsilon);
  to.flag("norm_weights", design.norm_weights);
  to.flag("embedding_norm", design.embedding_norm.has_value());
  to.flag("final_norm", design.final_norm);
  to.number("residual_scale", design.variants.residual_scale);
  to.flag("use_bias", design.use_bias);
  to.text("hidden_act", word_of(kActivations, design.activation));
  to.flag("gated", design.gated);
  to.number("embedding_scale", design.embedding_scale);
}

void add_attention(const Design& design, ConfigText& to) {
  const LayerDesign layer = design.layers.empty() ? LayerDesign{} : design.layers[0];
  const VariantDesign& variants = design.variants;
  if (variants.position.empty()) {
    to.text("position_embedding_type", word_of(kPositionTypes, design.position));
    if (design.position == PositionType::kSinusoidal) {
      to.flag("sinusoidal_interleaved", design.sinusoidal_interleaved);
    }
    if (design.position == PositionType::kRotary) {
      to.flag("rotary_interleaved", layer.rotary.layout == kernel::RotaryLayout::kAdjacent);
      // Other angles than plain ones are not read back, so that this family is not taken.
      to.number("rope_theta", rotary_base(layer.rotary.frequencies, 0).value_or(10000));
    }
  } else {
    to.text("position", variants.position);
    to.flag("position_shared", variants.position_shared);
  }
  if (layer.window) to.count("window", *layer.window);
  to.text("normalizer", design.normalizer);
  to.number("attention_scale", design.attention_scale);
  to.text("talking_heads", word_of(kTalkingHeads, variants.talking_heads));
  to.text("previous_scores", word_of(kPreviousScores, variants.previous_scores));
  if (!variants.mixer.empty()) {
    to.text("mixer", variants.mixer);
    to.count("mixer_inner_size", variants.mixer_inner_size);
    to.count("mixer_attention_size", variants.mixer_attention_size);
    to.count("mixer_kernel_size", variants.mixer_kernel_size);
    to.count("mixer_dilation", variants.mixer_dilation);
  }
  to.text("mask", mask_word(design));
  to.text("streams", word_of(kStreams, design.streams));
}

void add_head(const HeadDesign& head, ConfigText& to) {
  to.text("head", word_of(kHeads, head.kind));
  if (head.kind == HeadKind::kNone) return;
  to.flag("head_transform", head.transform);
  if (head.transform) to.text("head_act", word_of(kActivations, head.activation));
  to.flag("head_norm", head.norm.has_value());
  to.flag("tie_word_embeddings", head.tied);
  to.number("head_scale", head.scale);
}

}  // namespace

std::optional<std::string> masque_config(const Design& design, const TrainingConfig& training) {
  const bool spelled =
      !word_of(kActivations, design.activation).empty() &&
      (!design.head.transform || !word_of(kActivations, design.head.activation).empty()) &&
      (!design.variants.position.empty() || !word_of(kPositionTypes, design.position).empty());
  if (!spelled) return std::nullopt;
  ConfigText to;
  to.text("model_type", "masque");
  add_sizes(design, to);
  add_layer(design, to);
  add_attention(design, to);
  add_head(design.head, to);
  to.number("initializer_range", training.initializer_range);
  to.number("hidden_dropout_prob", training.hidden_dropout);
  to.number("attention_probs_dropout_prob", training.attention_dropout);
  to.text("dtype", "float32");
  return to.str();
}

}  // namespace masque::model
