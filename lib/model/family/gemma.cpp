// Gemma 1, 2 and 3 (text): embeddings times √hidden_size, norms whose weights are stored less 1.
// Gemma 2 has norms of what the parts of a layer give, soft caps of scores and logits, and a window
// in every other layer; Gemma 3 norms of queries and keys in place of the cap of scores, and other
// angles in the layers with windows. Gemma Team 2024, arXiv:2403.08295, arXiv:2408.00118; 2025,
// arXiv:2503.19786.
#include <cmath>
#include <utility>

#include "model/decoder_family.hpp"
#include "model/encoder_family.hpp"

namespace masque::model {
namespace {

/// A cap that may be null or absent; null is none where the class has a default.
double read_cap(const FamilyConfig& config, std::string_view name, double fallback) {
  if (config.is_null(name)) return 0;
  return config.has(name) ? config.positive(name, 1) : fallback;
}

/// Angles of Gemma 3: rope_parameters has an object for each kind of layers; rope_scaling scales
/// those of full attention alone.
RotaryDesign angles_of(const FamilyConfig& config, std::string_view kind, Design& design) {
  const auto parameters = config.object("rope_parameters");
  if (parameters && config.has("rope_scaling"))
    config.refuse("rope_scaling", "no value next to rope_parameters");
  if (parameters && !parameters->has(kFullAttention) && !parameters->has(kSlidingAttention))
    config.refuse("rope_parameters", "an object for each kind of layers");
  // transformers has a rope_type already, of which an old name does not take the place.
  if (const auto scaling = config.object("rope_scaling");
      scaling && scaling->has("type") && !scaling->has("rope_type"))
    scaling->refuse("type", "no value, but rope_type");
  const bool full = kind == kFullAttention;
  RotaryDefaults defaults = whole_heads(full ? config.positive("rope_theta", 1e6)
                                             : config.positive("rope_local_base_freq", 10000));
  defaults.parameters_name = kind;
  const FamilyConfig nothing(store::ModelConfig::parse("{}", config.raw().path()));
  return read_rotary(parameters ? *parameters
                     : full     ? config
                                : nothing,
                     defaults, design.head_size, design.max_position_embeddings, design.notes);
}

void read_windows_of_gemma(Design& design, const FamilyConfig& config, Index every) {
  std::vector<bool> local = all_layers(design, true);
  for (std::size_t l = 0; l < local.size(); ++l)
    local[l] = (static_cast<Index>(l) + 1) % every != 0;
  set_windows(design, config, read_local_layers(design, config, local),
              read_sliding_window(config, 4096));
}

void read_second(Design& design, const FamilyConfig& config) {
  set_angles(design, config, whole_heads());
  read_windows_of_gemma(design, config, 2);
  design.score_cap = read_cap(config, "attn_logit_softcapping", 50);
}

void read_third(Design& design, const FamilyConfig& config) {
  read_windows_of_gemma(design, config, config.size({"sliding_window_pattern"}, 6));
  const RotaryDesign full = angles_of(config, kFullAttention, design);
  const RotaryDesign local = angles_of(config, kSlidingAttention, design);
  for (LayerDesign& layer : design.layers) layer.rotary = layer.window ? local : full;
  design.query_key_norm = QueryKeyNorm::kHead;
}

std::vector<TensorRow> rows_of(const Design& design, const FamilyConfig& config) {
  DecoderParts parts = parts_by_config(config);
  parts.inner = Parts::kWeight;
  if (design.norm_placement == NormPlacement::kPre) return llama_rows(parts);
  std::vector<TensorRow> layers = {
      {"input_layernorm", {Role::kAttentionNorm}, Parts::kWeight},
      {"post_attention_layernorm", {Role::kAttentionOutputNorm}, Parts::kWeight},
      {"pre_feedforward_layernorm", {Role::kFeedForwardNorm}, Parts::kWeight},
      {"post_feedforward_layernorm", {Role::kFeedForwardOutputNorm}, Parts::kWeight}};
  append(layers, attention_rows(parts));
  append(layers, gated_rows(parts));
  if (design.query_key_norm != QueryKeyNorm::kNone)
    append(layers, {{"self_attn.q_norm", {Role::kQueryNorm}, Parts::kWeight},
                    {"self_attn.k_norm", {Role::kKeyNorm}, Parts::kWeight}});
  return decoder_rows(layers, Parts::kWeight);
}

ModelPlan make_plan(const FamilyConfig& config) {
  const std::string type = config.raw().model_type();
  const bool first = type != "gemma2" && type != "gemma3_text";
  const bool third = type == "gemma3_text";
  config.expect_flag("use_bidirectional_attention", false);
  Design design = decoder_design(config, "gemma",
                                 {.vocab_size = third ? 262208 : 256000,
                                  .hidden_size = first ? 3072 : 2304,
                                  .num_hidden_layers = first ? 28 : 26,
                                  .num_attention_heads = first ? 16 : 8,
                                  .num_key_value_heads = first ? 16 : 4,
                                  .head_dim = 256,
                                  .intermediate_size = first ? 24576 : 9216,
                                  .max_position_embeddings = third ? 131072 : 8192,
                                  .pad_token_id = 0,
                                  .activation = first ? "hidden_act" : "hidden_activation",
                                  .hidden_act = "gelu_pytorch_tanh"});
  // A name that first files have for the approximation.
  if (first && config.text("hidden_act", "") == "gelu")
    design.activation = kernel::Activation::kGeluTanh;
  design.norm.weight_offset = 1;
  design.embedding_scale = root_of_width(design, config);
  if (first) {
    set_angles(design, config, whole_heads());
  } else {
    design.norm_placement = NormPlacement::kSandwich;
    design.attention_scale = 1 / std::sqrt(config.positive("query_pre_attn_scalar", 256));
    third ? read_third(design, config) : read_second(design, config);
  }
  const double cap = first ? 0 : read_cap(config, "final_logit_softcapping", third ? 0 : 30);
  std::vector<TensorRow> rows = rows_of(design, config);
  ModelPlan plan = decoder_plan(std::move(design), config, std::move(rows), true);
  plan.heads.front().design.logit_cap = cap;
  return plan;
}

const Family kFamily{
    .name = "gemma",
    .model_types = {"gemma", "gemma2", "gemma3_text"},
    .classes = {"Gemma", "Gemma2", "Gemma3"},
    .heads = {{HeadKind::kCausal, "ForCausalLM"}},
    .loads = "Gemma 1, 2 and 3 (text), with the causal-LM head or without",
    .plan = make_plan,
    .files = {.wide_configs = {R"("attention_bias": true)"}},
    .base_classes = "GemmaModel Gemma2Model Gemma3TextModel",
    .like = "llama",
};
const FamilyRegistration kRegistration{kFamily};

}  // namespace
}  // namespace masque::model
