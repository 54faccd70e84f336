// GPT-J: decoder with rotary positions on the first features of each head, in neighbouring pairs;
// attention and feed-forward layer side by side after one norm. Wang 2021.
#include "model/decoder_family.hpp"
#include "model/encoder_family.hpp"
#include "model/rotary_config.hpp"

namespace masque::model {
namespace {

Design read_design(const FamilyConfig& config) {
  Design design;
  design.family = "gptj";
  design.model_type = config.raw().model_type();
  design.vocab_size = config.size({"vocab_size"}, 50400);
  design.hidden_size = config.size({"n_embd", "hidden_size"}, 4096);
  design.embedding_size = design.hidden_size;
  design.num_hidden_layers = config.layers({"n_layer", "num_hidden_layers"}, 28);
  design.num_attention_heads = config.size({"n_head", "num_attention_heads"}, 16);
  design.intermediate_size = config.size({"n_inner"}, 4 * design.hidden_size);
  design.max_position_embeddings = config.size({"n_positions", "max_position_embeddings"}, 2048);
  design.pad_token_id = config.optional_count("pad_token_id");
  design.norm_placement = NormPlacement::kParallelShared;
  design.norm.epsilon = config.positive("layer_norm_epsilon", 1e-5);
  design.final_norm = true;
  design.activation = config.activation("activation_function", "gelu_new");
  design.mask = DefaultMask::kCausal;
  split_heads(design, config, "n_embd", "n_head");
  design.position = PositionType::kRotary;
  // Without it transformers takes the angles of a head as wide as the states.
  if (config.is_null("rotary_dim")) config.refuse("rotary_dim", "a number of features");
  const Index rotated = config.size({"rotary_dim"}, 64);
  check_rotary_size(config, "rotary_dim", rotated);
  if (rotated > design.head_size) config.refuse("rotary_dim", "at most n_embd / n_head");
  LayerDesign layer;
  layer.rotary = float_rotary(10000, rotated);
  layer.rotary.layout = kernel::RotaryLayout::kAdjacent;
  fill_layers(design, layer);
  return design;
}

ModelPlan make_plan(const FamilyConfig& config) {
  ModelPlan plan;
  plan.prefix = "transformer.";
  plan.design = read_design(config);
  plan.rows = {
      {"~wte", {Role::kWordTable}, Parts::kWeight},
      {"~h.{l}.ln_1", {Role::kAttentionNorm}},
      {"~h.{l}.attn.q_proj", {Role::kQuery}, Parts::kWeight},
      {"~h.{l}.attn.k_proj", {Role::kKey}, Parts::kWeight},
      {"~h.{l}.attn.v_proj", {Role::kValue}, Parts::kWeight},
      {"~h.{l}.attn.out_proj", {Role::kOutput}, Parts::kWeight},
      {"~h.{l}.mlp.fc_in", {Role::kUp}},
      {"~h.{l}.mlp.fc_out", {Role::kDown}},
      {"~ln_f", {Role::kFinalNorm}},
  };
  add_lm_head(plan, config, false);
  plan.heads[0].rows = {{"lm_head.bias", {Role::kDecoder}, Parts::kBiasTensor}};
  plan.heads[0].evidence = "lm_head.bias|lm_head.weight";
  plan.buffers = {{".attn.bias", BufferTensor::Content::kCausal},
                  {".attn.masked_bias"},
                  {".attn.embed_positions"}};
  return plan;
}

const Family kFamily{
    .name = "gptj",
    .model_types = {"gptj"},
    .classes = {"GPTJ"},
    .heads = {{HeadKind::kCausal, "ForCausalLM"}},
    .loads = "GPT-J, with the causal-LM head or without",
    .plan = make_plan,
    .starts = unpadded_starts,
    .files = {.position_field = "n_positions"},
};
const FamilyRegistration kRegistration{kFamily};

}  // namespace
}  // namespace masque::model
