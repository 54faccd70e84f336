// Llama: pre-norm decoder with RMS norms, rotary positions, gated feed-forward, and keys and values
// that several heads share. Touvron 2023, arXiv:2302.13971.
#include <cmath>

#include "model/encoder_family.hpp"
#include "model/rotary_config.hpp"

namespace masque::model {
namespace {

void read_heads(Design& design, const FamilyConfig& config) {
  design.num_attention_heads = config.size({"num_attention_heads"}, 32);
  split_heads(design, config, "hidden_size", "num_attention_heads");
  design.num_key_value_heads = config.size({"num_key_value_heads"}, design.num_attention_heads);
  if (design.num_attention_heads % design.num_key_value_heads != 0) {
    config.refuse("num_key_value_heads", "a divisor of num_attention_heads");
  }
  design.head_size = config.size({"head_dim"}, design.head_size);
  design.attention_scale = 1 / std::sqrt(static_cast<double>(design.head_size));
}

Design read_design(const FamilyConfig& config) {
  Design design;
  design.family = "llama";
  design.model_type = config.raw().model_type();
  design.vocab_size = config.size({"vocab_size"}, 32000);
  design.hidden_size = config.size({"hidden_size"}, 4096);
  design.embedding_size = design.hidden_size;
  design.num_hidden_layers = config.layers({"num_hidden_layers"}, 32);
  read_heads(design, config);
  design.intermediate_size = config.size({"intermediate_size"}, 11008);
  design.max_position_embeddings = config.size({"max_position_embeddings"}, 2048);
  design.pad_token_id = config.optional_count("pad_token_id");
  design.norm_placement = NormPlacement::kPre;
  design.norm = {kernel::Norm::kRms, config.positive("rms_norm_eps", 1e-6)};
  design.final_norm = true;
  design.activation = config.activation("hidden_act", "silu");
  design.gated = true;
  design.mask = DefaultMask::kCausal;
  design.position = PositionType::kRotary;
  LayerDesign layer;
  layer.rotary = read_rotary(config, {.share_name = "partial_rotary_factor", .fixed_share = true},
                             design.head_size, design.max_position_embeddings, design.notes);
  fill_layers(design, layer);
  return design;
}

ModelPlan make_plan(const FamilyConfig& config) {
  ModelPlan plan;
  plan.prefix = "model.";
  plan.design = read_design(config);
  const Parts attention = config.flag("attention_bias", false) ? Parts::kBoth : Parts::kWeight;
  const Parts inner = config.flag("mlp_bias", false) ? Parts::kBoth : Parts::kWeight;
  plan.rows = {
      {"~embed_tokens", {Role::kWordTable}, Parts::kWeight},
      {"~layers.{l}.input_layernorm", {Role::kAttentionNorm}, Parts::kWeight},
      {"~layers.{l}.self_attn.q_proj", {Role::kQuery}, attention},
      {"~layers.{l}.self_attn.k_proj", {Role::kKey}, attention},
      {"~layers.{l}.self_attn.v_proj", {Role::kValue}, attention},
      {"~layers.{l}.self_attn.o_proj", {Role::kOutput}, attention},
      {"~layers.{l}.post_attention_layernorm", {Role::kFeedForwardNorm}, Parts::kWeight},
      {"~layers.{l}.mlp.gate_proj", {Role::kGate}, inner},
      {"~layers.{l}.mlp.up_proj", {Role::kUp}, inner},
      {"~layers.{l}.mlp.down_proj", {Role::kDown}, inner},
      {"~norm", {Role::kFinalNorm}, Parts::kWeight},
  };
  HeadDesign head = vocabulary_head(plan.design, config);
  head.tied = config.flag("tie_word_embeddings", false);
  plan.heads = {bare_head(head, config, "causal-LM head", "lm_head.weight")};
  plan.buffers = {{".rotary_emb.inv_freq"}};
  return plan;
}

const Family kFamily{
    .name = "llama",
    .model_types = {"llama"},
    .classes = {"Llama"},
    .heads = {{HeadKind::kCausal, "ForCausalLM"}},
    .loads = "Llama 1 to 3, with the causal-LM head or without",
    .plan = make_plan,
    .files = {.wide_configs = {R"("attention_bias": true, "mlp_bias": true)"}},
    .also_reads = {"mistral"},  // a window that hides something is refused by its key
};
const FamilyRegistration kRegistration{kFamily};

}  // namespace
}  // namespace masque::model
