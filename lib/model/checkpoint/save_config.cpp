// config.json of the families that trained models are saved as.
#include <algorithm>
#include <array>

#include "base/error.hpp"
#include "model/checkpoint/config_text.hpp"
#include "model/masque_names.hpp"

namespace masque::model {
namespace {

using Config = std::optional<std::string>;

/// Whether head and sizes are such as BERT's relatives can have: what the plan would refuse.
bool is_plain(const Design& design) {
  return design.layer_kind == LayerKind::kTransformer && design.variants == VariantDesign{} &&
         design.max_position_embeddings > 0 && design.num_hidden_layers > 0 &&
         design.hidden_size == design.num_attention_heads * design.head_size &&
         !word_of(kActivations, design.activation).empty();
}

/// Transformers' encoders cannot do without token types.
bool is_encoder(const Design& design) { return is_plain(design) && design.type_vocab_size > 0; }

void add_common(const Design& design, const TrainingConfig& training, ConfigText& to) {
  to.count("vocab_size", design.vocab_size);
  to.optional("pad_token_id", design.pad_token_id);
  if (design.mask_token_id) to.optional("mask_token_id", design.mask_token_id);
  to.flag("tie_word_embeddings", design.head.kind == HeadKind::kNone || design.head.tied);
  to.number("initializer_range", training.initializer_range);
  to.text("dtype", "float32");
}

/// model_type, and the class that has the design's head.
void add_type(const Design& design, std::string_view type, ConfigText& to) {
  to.text("model_type", type);
  to.architecture(class_name(*find_family(type), type, design.head.kind));
}

/// What BERT's spelling has after the sizes of a layer.
void add_after_sizes(const Design& design, const TrainingConfig& training, ConfigText& to) {
  to.text("hidden_act", word_of(kActivations, design.activation));
  to.count("max_position_embeddings", design.max_position_embeddings);
  to.count("type_vocab_size", design.type_vocab_size);
  to.number("layer_norm_eps", design.norm.epsilon);
  to.number("hidden_dropout_prob", training.hidden_dropout);
  to.number("attention_probs_dropout_prob", training.attention_dropout);
}

void add_encoder(const Design& design, const TrainingConfig& training, ConfigText& to) {
  add_common(design, training, to);
  to.count("hidden_size", design.hidden_size);
  to.count("num_hidden_layers", design.num_hidden_layers);
  to.count("num_attention_heads", design.num_attention_heads);
  to.count("intermediate_size", design.intermediate_size);
  add_after_sizes(design, training, to);
  if (design.mask == DefaultMask::kCausal) to.flag("is_decoder", true);
}

Config bert(const Design& design, const TrainingConfig& training) {
  if (!is_encoder(design)) return std::nullopt;
  ConfigText to;
  add_type(design, "bert", to);
  add_encoder(design, training, to);
  return to.str();
}

Config roformer(const Design& design, const TrainingConfig& training) {
  if (!is_encoder(design) || design.head_size % 2 != 0 || design.layers.empty()) {
    return std::nullopt;
  }
  ConfigText to;
  add_type(design, "roformer", to);
  add_encoder(design, training, to);
  to.count("embedding_size", design.embedding_size);
  to.flag("rotary_value", design.layers[0].rotary.values);
  if (design.norm.kind == kernel::Norm::kRms) {
    to.text("norm_type", "rms_norm");
    to.flag("use_bias", false);
  }
  return to.str();
}

Config gpt2(const Design& design, const TrainingConfig& training) {
  if (!is_plain(design)) return std::nullopt;
  ConfigText to;
  add_type(design, "gpt2", to);
  add_common(design, training, to);
  to.count("n_embd", design.hidden_size);
  to.count("n_layer", design.num_hidden_layers);
  to.count("n_head", design.num_attention_heads);
  to.count("n_inner", design.intermediate_size);
  to.count("n_positions", design.max_position_embeddings);
  const bool by_layer = design.layers.size() > 1 && design.layers[1].attention_scale != 1;
  if (by_layer) to.flag("scale_attn_by_inverse_layer_idx", true);
  to.text("activation_function", word_of(kActivations, design.activation));
  to.number("layer_norm_epsilon", design.norm.epsilon);
  to.number("embd_pdrop", training.hidden_dropout);
  to.number("resid_pdrop", training.hidden_dropout);
  to.number("attn_pdrop", training.attention_dropout);
  to.null("bos_token_id");
  to.null("eos_token_id");
  return to.str();
}

Config electra(const Design& design, const TrainingConfig& training) {
  if (!is_encoder(design)) return std::nullopt;
  ConfigText to;
  add_type(design, "electra", to);
  add_encoder(design, training, to);
  to.count("embedding_size", design.embedding_size);
  return to.str();
}

Config gau_alpha(const Design& design, const TrainingConfig& training) {
  constexpr std::array<std::string_view, 3> kKnown{"softmax_plus", "softmax", "squared_relu"};
  if (design.layer_kind != LayerKind::kGatedAttention || design.norm_weights ||
      design.embedding_size != design.hidden_size || design.max_position_embeddings == 0 ||
      design.attention_key_size % 2 != 0 ||
      std::ranges::find(kKnown, design.normalizer) == kKnown.end() ||
      word_of(kActivations, design.activation).empty()) {
    return std::nullopt;
  }
  ConfigText to;
  add_type(design, "gau_alpha", to);
  add_common(design, training, to);
  to.count("hidden_size", design.hidden_size);
  to.count("num_hidden_layers", design.num_hidden_layers);
  to.count("intermediate_size", design.intermediate_size);
  to.count("attention_key_size", design.attention_key_size);
  add_after_sizes(design, training, to);
  to.text("normalization", design.normalizer);
  to.flag("attention_scale", design.attention_scale != 1);
  to.flag("use_bias", design.use_bias);
  return to.str();
}

Config tta(const Design& design, const TrainingConfig& training) {
  if (!is_plain(design) || design.streams != Streams::kFixedKeys ||
      design.mask != DefaultMask::kOthers) {
    return std::nullopt;
  }
  ConfigText to;
  add_type(design, "tta", to);
  add_encoder(design, training, to);
  return to.str();
}

struct Writer {
  std::string_view family;
  Config (*write)(const Design&, const TrainingConfig&);
};
constexpr std::array<Writer, 7> kWriters{{{"bert", bert},
                                          {"roformer", roformer},
                                          {"gpt2", gpt2},
                                          {"electra", electra},
                                          {"gau_alpha", gau_alpha},
                                          {"tta", tta},
                                          {"masque", masque_config}}};

/// The plan that a family makes of the text, with this head if it has it.
std::optional<ModelPlan> plan_from(std::string_view family, const std::string& text,
                                   const HeadDesign& head) {
  ModelPlan plan =
      find_family(family)->plan(FamilyConfig(store::ModelConfig::parse(text, "config.json")));
  if (head.kind != HeadKind::kNone && head_like(plan, head) == nullptr) return std::nullopt;
  plan.design.head = head;
  return plan;
}

struct Found {
  SavedConfig config;
  ModelPlan plan;
};

Found find(const Design& design, const TrainingConfig& training) {
  for (const Writer& writer : kWriters) {
    const Config text = writer.write(design, training);
    if (!text) continue;
    std::optional<ModelPlan> plan = plan_from(writer.family, *text, design.head);
    if (!plan || !same_design(plan->design, design)) continue;
    return {{std::string(writer.family), *text}, *std::move(plan)};
  }
  throw UsageError(
      "no family has this design: its combination of options cannot be written as config.json");
}

}  // namespace

SavedConfig config_of(const Design& design, const TrainingConfig& training) {
  return find(design, training).config;
}

ModelPlan plan_of(const Design& design) { return find(design, {}).plan; }

}  // namespace masque::model
