// BLOOM: pre-norm decoder with ALiBi and a norm of the embeddings. Scao 2022, arXiv:2211.05100.
#include "model/decoder_family.hpp"
#include "model/encoder_family.hpp"

namespace masque::model {
namespace {

Design read_design(const FamilyConfig& config) {
  config.expect_flag("apply_residual_connection_post_layernorm", false);
  Design design;
  design.family = "bloom";
  design.model_type = config.raw().model_type();
  design.vocab_size = config.size({"vocab_size"}, 250880);
  design.hidden_size = config.size({"n_embed", "hidden_size"}, 64);
  design.embedding_size = design.hidden_size;
  design.num_hidden_layers = config.layers({"n_layer", "num_hidden_layers"}, 2);
  design.num_attention_heads = config.size({"n_head", "num_attention_heads"}, 8);
  design.intermediate_size = 4 * design.hidden_size;
  design.pad_token_id = config.optional_count("pad_token_id");
  design.norm_placement = NormPlacement::kPre;
  design.norm.epsilon = config.positive("layer_norm_epsilon", 1e-5);
  design.embedding_norm = design.norm;
  design.final_norm = true;
  design.activation = kernel::Activation::kGeluTanh;
  design.mask = DefaultMask::kCausal;
  design.position = PositionType::kNone;
  design.variants.position = "alibi";
  split_heads(design, config, "hidden_size", "n_head");
  fill_layers(design);
  return design;
}

ModelPlan make_plan(const FamilyConfig& config) {
  ModelPlan plan;
  plan.prefix = "transformer.";
  plan.design = read_design(config);
  plan.rows = {
      {"~word_embeddings", {Role::kWordTable}, Parts::kWeight},
      {"~word_embeddings_layernorm", {Role::kEmbeddingNorm}},
      {"~h.{l}.input_layernorm", {Role::kAttentionNorm}},
      {"~h.{l}.self_attention.query_key_value",
       {Role::kQuery, Role::kKey, Role::kValue},
       Parts::kBoth,
       TensorLayout::kHeadGroups},
      {"~h.{l}.self_attention.dense", {Role::kOutput}},
      {"~h.{l}.post_attention_layernorm", {Role::kFeedForwardNorm}},
      {"~h.{l}.mlp.dense_h_to_4h", {Role::kUp}},
      {"~h.{l}.mlp.dense_4h_to_h", {Role::kDown}},
      {"~ln_f", {Role::kFinalNorm}},
  };
  add_lm_head(plan, config, true);
  return plan;
}

const Family kFamily{
    .name = "bloom",
    .model_types = {"bloom"},
    .classes = {"Bloom"},
    .heads = {{HeadKind::kCausal, "ForCausalLM"}},
    .loads = "BLOOM, with the causal-LM head or without",
    .plan = make_plan,
    .starts = unpadded_starts,
};
const FamilyRegistration kRegistration{kFamily};

}  // namespace
}  // namespace masque::model
