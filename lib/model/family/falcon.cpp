// Falcon: decoder with rotary positions or ALiBi. Three designs: one head of keys and values, both
// parts of a layer side by side after one norm (7B); groups of heads and a norm for each part (40B,
// 180B), or one for both (11B); and as many heads of keys as of queries (RW, with ALiBi).
// Almazrouei 2023, arXiv:2311.16867.
#include <optional>
#include <utility>
#include <vector>

#include "model/decoder_family.hpp"
#include "model/encoder_family.hpp"

namespace masque::model {
namespace {

/// What config.json says of the layers.
struct FalconLayers {
  bool groups = false;   ///< new_decoder_architecture
  bool one_key = false;  ///< multi_query
  NormPlacement norms = NormPlacement::kPre;
};

FalconLayers read_layers(const FamilyConfig& config) {
  FalconLayers layers;
  layers.groups = config.flag("new_decoder_architecture", false);
  layers.one_key = config.flag("multi_query", true) && !layers.groups;
  const bool parallel = config.flag("parallel_attn", true);
  const auto norms = config.optional_count("num_ln_in_parallel_attn");
  if (layers.groups) {
    if (!parallel) config.refuse("parallel_attn", "true with new_decoder_architecture");
    if (norms && *norms != 1 && *norms != 2) config.refuse("num_ln_in_parallel_attn", "1 or 2");
    layers.norms =
        norms.value_or(2) == 2 ? NormPlacement::kParallel : NormPlacement::kParallelShared;
  } else {
    if (norms == 2) config.refuse("num_ln_in_parallel_attn", "1");
    if (parallel) layers.norms = NormPlacement::kParallelShared;
  }
  return layers;
}

Design read_design(const FamilyConfig& config, const FalconLayers& layers) {
  Design design;
  design.family = "falcon";
  design.model_type = config.raw().model_type();
  design.vocab_size = config.size({"vocab_size"}, 65024);
  design.hidden_size = config.size({"n_embed", "hidden_size"}, 4544);
  design.embedding_size = design.hidden_size;
  design.num_hidden_layers = config.layers({"num_hidden_layers", "n_layer"}, 32);
  design.num_attention_heads = config.size({"num_attention_heads", "n_head"}, 71);
  design.intermediate_size = config.size({"ffn_hidden_size"}, 4 * design.hidden_size);
  design.max_position_embeddings = config.size({"max_position_embeddings"}, 2048);
  design.pad_token_id = config.optional_count("pad_token_id");
  design.norm_placement = layers.norms;
  design.norm.epsilon = config.positive("layer_norm_epsilon", 1e-5);
  design.final_norm = true;
  design.activation = config.activation("activation", "gelu");
  design.mask = DefaultMask::kCausal;
  split_heads(design, config, "hidden_size", "num_attention_heads");
  const Index keys = config.size({"num_kv_heads", "n_head_kv"}, design.num_attention_heads);
  if (layers.groups) design.num_key_value_heads = keys;
  if (layers.one_key) design.num_key_value_heads = 1;
  if (design.num_attention_heads % design.num_key_value_heads != 0)
    config.refuse("num_kv_heads", "a divisor of num_attention_heads");
  fill_layers(design);
  if (config.flag("alibi", false)) {
    design.position = PositionType::kNone;
    design.variants.position = "alibi(bf16=true)";
    for (const char* unread : {"rope_parameters", "rope_scaling"})
      static_cast<void>(config.has(unread));
  } else {
    design.position = PositionType::kRotary;
    set_angles(design, config, whole_heads());
  }
  return design;
}

ModelPlan make_plan(const FamilyConfig& config) {
  const FalconLayers layers = read_layers(config);
  ModelPlan plan;
  plan.prefix = "transformer.";
  plan.design = read_design(config, layers);
  const Parts parts = config.flag("bias", false) ? Parts::kBoth : Parts::kWeight;
  const std::string layer = "~h.{l}.";
  const bool two = layers.norms == NormPlacement::kParallel;
  plan.rows = {{"~word_embeddings", {Role::kWordTable}, Parts::kWeight},
               {layer + (two ? "ln_attn" : "input_layernorm"), {Role::kAttentionNorm}},
               {layer + "self_attention.query_key_value",
                {Role::kQuery, Role::kKey, Role::kValue},
                parts,
                layers.one_key ? TensorLayout::kOutIn : TensorLayout::kHeadGroups},
               {layer + "self_attention.dense", {Role::kOutput}, parts},
               {layer + "mlp.dense_h_to_4h", {Role::kUp}, parts},
               {layer + "mlp.dense_4h_to_h", {Role::kDown}, parts},
               {"~ln_f", {Role::kFinalNorm}}};
  if (layers.norms != NormPlacement::kParallelShared)
    plan.rows.push_back(
        {layer + (two ? "ln_mlp" : "post_attention_layernorm"), {Role::kFeedForwardNorm}});
  add_lm_head(plan, config, true);
  plan.buffers = {{".rotary_emb.inv_freq"}};
  return plan;
}

const Family kFamily{
    .name = "falcon",
    .model_types = {"falcon"},
    .classes = {"Falcon"},
    .heads = {{HeadKind::kCausal, "ForCausalLM"}},
    .loads = "Falcon, with rotary positions or ALiBi, with the causal-LM head or without",
    .plan = make_plan,
    .starts = unpadded_starts,
    .files = {.wide_configs = {R"("bias": true, "new_decoder_architecture": true)",
                               R"("bias": true, "parallel_attn": false, "multi_query": false)"}},
};
const FamilyRegistration kRegistration{kFamily};

}  // namespace
}  // namespace masque::model
