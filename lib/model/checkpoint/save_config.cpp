// config.json of the families that trained models are saved as.
#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/json.hpp"
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
  to.member("vocab_size", design.vocab_size);
  to.member("pad_token_id", design.pad_token_id);
  if (design.mask_token_id) to.member("mask_token_id", design.mask_token_id);
  to.member("tie_word_embeddings", design.head.kind == HeadKind::kNone || design.head.tied);
  to.member("initializer_range", training.initializer_range);
  to.member("dtype", "float32");
}

/// model_type, and the class that has the design's head.
void add_type(const Design& design, std::string_view type, ConfigText& to) {
  to.member("model_type", type);
  to.architecture(class_name(*find_family(type), type, design.head.kind));
}

/// What BERT's spelling has after the sizes of a layer.
void add_after_sizes(const Design& design, const TrainingConfig& training, ConfigText& to) {
  to.member("hidden_act", word_of(kActivations, design.activation));
  to.member("max_position_embeddings", design.max_position_embeddings);
  to.member("type_vocab_size", design.type_vocab_size);
  to.member("layer_norm_eps", design.norm.epsilon);
  to.member("hidden_dropout_prob", training.hidden_dropout);
  to.member("attention_probs_dropout_prob", training.attention_dropout);
}

void add_encoder(const Design& design, const TrainingConfig& training, ConfigText& to) {
  add_common(design, training, to);
  to.member("hidden_size", design.hidden_size);
  to.member("num_hidden_layers", design.num_hidden_layers);
  to.member("num_attention_heads", design.num_attention_heads);
  to.member("intermediate_size", design.intermediate_size);
  add_after_sizes(design, training, to);
  if (design.mask == DefaultMask::kCausal) to.member("is_decoder", true);
}

Config bert(const Design& design, const TrainingConfig& training) {
  if (!is_encoder(design)) return std::nullopt;
  ConfigText to;
  add_type(design, "bert", to);
  add_encoder(design, training, to);
  return to.finish();
}

Config roformer(const Design& design, const TrainingConfig& training) {
  if (!is_encoder(design) || design.head_size % 2 != 0 || design.layers.empty()) {
    return std::nullopt;
  }
  ConfigText to;
  add_type(design, "roformer", to);
  add_encoder(design, training, to);
  to.member("embedding_size", design.embedding_size);
  to.member("rotary_value", design.layers[0].rotary.values);
  if (design.norm.kind == kernel::Norm::kRms) {
    to.member("norm_type", "rms_norm");
    to.member("use_bias", false);
  }
  return to.finish();
}

Config gpt2(const Design& design, const TrainingConfig& training) {
  if (!is_plain(design)) return std::nullopt;
  ConfigText to;
  add_type(design, "gpt2", to);
  add_common(design, training, to);
  to.member("n_embd", design.hidden_size);
  to.member("n_layer", design.num_hidden_layers);
  to.member("n_head", design.num_attention_heads);
  to.member("n_inner", design.intermediate_size);
  to.member("n_positions", design.max_position_embeddings);
  const bool by_layer = design.layers.size() > 1 && design.layers[1].attention_scale != 1;
  if (by_layer) to.member("scale_attn_by_inverse_layer_idx", true);
  to.member("activation_function", word_of(kActivations, design.activation));
  to.member("layer_norm_epsilon", design.norm.epsilon);
  to.member("embd_pdrop", training.hidden_dropout);
  to.member("resid_pdrop", training.hidden_dropout);
  to.member("attn_pdrop", training.attention_dropout);
  to.member("bos_token_id", nullptr);
  to.member("eos_token_id", nullptr);
  return to.finish();
}

Config electra(const Design& design, const TrainingConfig& training) {
  if (!is_encoder(design)) return std::nullopt;
  ConfigText to;
  add_type(design, "electra", to);
  add_encoder(design, training, to);
  to.member("embedding_size", design.embedding_size);
  return to.finish();
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
  to.member("hidden_size", design.hidden_size);
  to.member("num_hidden_layers", design.num_hidden_layers);
  to.member("intermediate_size", design.intermediate_size);
  to.member("attention_key_size", design.attention_key_size);
  add_after_sizes(design, training, to);
  to.member("normalization", design.normalizer);
  to.member("attention_scale", design.attention_scale != 1);
  to.member("use_bias", design.use_bias);
  return to.finish();
}

Config tta(const Design& design, const TrainingConfig& training) {
  if (!is_plain(design) || design.streams != Streams::kFixedKeys ||
      design.mask != DefaultMask::kOthers) {
    return std::nullopt;
  }
  ConfigText to;
  add_type(design, "tta", to);
  add_encoder(design, training, to);
  return to.finish();
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
  SavedConfig config = find(design, training).config;
  config.text = with_begin_token(config.text, training);
  return config;
}

std::string with_begin_token(const std::string& config, const TrainingConfig& training) {
  if (!training.begin_token) return erase_json_member(config, {kBeginToken});
  return set_json_member(config, {kBeginToken}, fmt::format("{}", *training.begin_token));
}

ModelPlan plan_of(const Design& design) { return find(design, {}).plan; }

}  // namespace masque::model
