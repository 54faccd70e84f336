// GPT-NeoX (Pythia): decoder with rotary positions on a part of each head, attention and
// feed-forward side by side. Black 2022, arXiv:2204.06745.
#include "model/encoder_family.hpp"
#include "model/rotary_config.hpp"

namespace masque::model {
namespace {

Design read_design(const FamilyConfig& config) {
  Design design;
  design.family = "gpt_neox";
  design.model_type = config.raw().model_type();
  design.vocab_size = config.size({"vocab_size"}, 50432);
  design.hidden_size = config.size({"hidden_size"}, 6144);
  design.embedding_size = design.hidden_size;
  design.num_hidden_layers = config.layers({"num_hidden_layers"}, 44);
  design.num_attention_heads = config.size({"num_attention_heads"}, 64);
  design.intermediate_size = config.size({"intermediate_size"}, 24576);
  design.max_position_embeddings = config.size({"max_position_embeddings"}, 2048);
  design.pad_token_id = config.optional_count("pad_token_id");
  design.norm_placement =
      config.flag("use_parallel_residual", true) ? NormPlacement::kParallel : NormPlacement::kPre;
  design.norm.epsilon = config.positive("layer_norm_eps", 1e-5);
  design.final_norm = true;
  design.activation = config.activation("hidden_act", "gelu");
  design.mask = DefaultMask::kCausal;
  split_heads(design, config, "hidden_size", "num_attention_heads");
  design.position = PositionType::kRotary;
  LayerDesign layer;
  layer.rotary = read_rotary(
      config, {.share = 0.25, .theta_name = "rotary_emb_base", .share_name = "rotary_pct"},
      design.head_size, design.max_position_embeddings, design.notes);
  fill_layers(design, layer);
  return design;
}

ModelPlan make_plan(const FamilyConfig& config) {
  ModelPlan plan;
  plan.prefix = "gpt_neox.";
  plan.design = read_design(config);
  const Parts parts = config.flag("attention_bias", true) ? Parts::kBoth : Parts::kWeight;
  plan.rows = {
      {"~embed_in", {Role::kWordTable}, Parts::kWeight},
      {"~layers.{l}.input_layernorm", {Role::kAttentionNorm}},
      {"~layers.{l}.attention.query_key_value",
       {Role::kQuery, Role::kKey, Role::kValue},
       parts,
       TensorLayout::kHeadGroups},
      {"~layers.{l}.attention.dense", {Role::kOutput}, parts},
      {"~layers.{l}.post_attention_layernorm", {Role::kFeedForwardNorm}},
      {"~layers.{l}.mlp.dense_h_to_4h", {Role::kUp}},
      {"~layers.{l}.mlp.dense_4h_to_h", {Role::kDown}},
      {"~final_layer_norm", {Role::kFinalNorm}},
  };
  HeadDesign head = vocabulary_head(plan.design, config);
  head.tied = config.flag("tie_word_embeddings", false);
  plan.heads = {bare_head(head, config, "causal-LM head", "embed_out.weight|lm_head.weight")};
  plan.heads[0].decoder = "lm_head.weight|embed_out.weight";  // the latter is what files have
  plan.buffers = {{".attention.bias", BufferTensor::Content::kCausal},
                  {".attention.masked_bias"},
                  {".rotary_emb.inv_freq"}};
  return plan;
}

const Family kFamily{
    .name = "gpt_neox",
    .model_types = {"gpt_neox"},
    .classes = {"GPTNeoX"},
    .heads = {{HeadKind::kCausal, "ForCausalLM"}},
    .loads = "GPT-NeoX and Pythia, with the causal-LM head or without",
    .plan = make_plan,
    .starts = unpadded_starts,
};
const FamilyRegistration kRegistration{kFamily};

}  // namespace
}  // namespace masque::model
