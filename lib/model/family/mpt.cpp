// MPT: pre-norm decoder with ALiBi and without biases. MosaicML 2023.
#include "model/decoder_family.hpp"
#include "model/encoder_family.hpp"

namespace masque::model {
namespace {

/// attn_config, which may be absent.
void read_attention(const FamilyConfig& attention, Design& design) {
  attention.expect_text("attn_type", "multihead_attention");
  attention.expect_flag("prefix_lm", false);
  attention.expect_flag("qk_ln", false);
  attention.expect_flag("attn_uses_sequence_id", false);
  // transformers adds ALiBi whatever this flag is.
  attention.expect_flag("alibi", true);
  attention.expect_number("alibi_bias_max", 8);
  if (attention.has("clip_qkv")) design.clip_qkv = attention.positive("clip_qkv", 1);
  design.attention_scale = attention.positive("softmax_scale", design.attention_scale);
}

Design read_design(const FamilyConfig& config) {
  Design design;
  design.family = "mpt";
  design.model_type = config.raw().model_type();
  design.vocab_size = config.size({"vocab_size"}, 50368);
  design.hidden_size = config.size({"d_model", "hidden_size"}, 2048);
  design.embedding_size = design.hidden_size;
  design.num_hidden_layers = config.layers({"n_layers", "num_hidden_layers"}, 24);
  design.num_attention_heads = config.size({"n_heads", "num_attention_heads"}, 16);
  design.intermediate_size = 4 * design.hidden_size;
  config.expect_number("expansion_ratio", 4);
  design.max_position_embeddings = config.size({"max_seq_len"}, 2048);
  design.pad_token_id = config.optional_count("pad_token_id");
  design.norm_placement = NormPlacement::kPre;
  design.norm.epsilon = config.positive("layer_norm_epsilon", 1e-5);
  design.final_norm = true;
  design.activation = kernel::Activation::kGelu;
  design.mask = DefaultMask::kCausal;
  design.position = PositionType::kNone;
  design.variants.position = "alibi";
  config.expect_flag("no_bias", true);
  split_heads(design, config, "d_model", "n_heads");
  if (const auto attention = config.object("attn_config")) read_attention(*attention, design);
  fill_layers(design);
  return design;
}

ModelPlan make_plan(const FamilyConfig& config) {
  ModelPlan plan;
  plan.prefix = "transformer.";
  plan.design = read_design(config);
  plan.rows = {
      {"~wte", {Role::kWordTable}, Parts::kWeight},
      {"~blocks.{l}.norm_1", {Role::kAttentionNorm}, Parts::kWeight},
      {"~blocks.{l}.attn.Wqkv", {Role::kQuery, Role::kKey, Role::kValue}, Parts::kWeight},
      {"~blocks.{l}.attn.out_proj", {Role::kOutput}, Parts::kWeight},
      {"~blocks.{l}.norm_2", {Role::kFeedForwardNorm}, Parts::kWeight},
      {"~blocks.{l}.ffn.up_proj", {Role::kUp}, Parts::kWeight},
      {"~blocks.{l}.ffn.down_proj", {Role::kDown}, Parts::kWeight},
      {"~norm_f", {Role::kFinalNorm}, Parts::kWeight},
  };
  add_lm_head(plan, config, true);
  return plan;
}

const Family kFamily{
    .name = "mpt",
    .model_types = {"mpt"},
    .classes = {"Mpt"},
    .heads = {{HeadKind::kCausal, "ForCausalLM"}},
    .loads = "MPT with ALiBi, with the causal-LM head or without",
    .plan = make_plan,
    .starts = unpadded_starts,
};
const FamilyRegistration kRegistration{kFamily};

}  // namespace
}  // namespace masque::model
