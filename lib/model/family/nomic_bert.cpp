// NomicBERT: post-norm encoder with rotary positions, gated feed-forward layers and no biases.
// Nussbaum 2024, arXiv:2402.01613. The authors' own files have options as GPT-2's.
#include <string>
#include <utility>

#include "model/encoder_family.hpp"
#include "model/rotary_config.hpp"

namespace masque::model {
namespace {

/// Whether `config` is of the authors' files.
bool has_own_options(const FamilyConfig& config) { return config.has("n_embd"); }

/// Throws InputError for options of the authors' code that masque does not have.
void check_own_options(const FamilyConfig& config) {
  config.expect_flag("prenorm", false);
  config.expect_flag("parallel_block", false);
  config.expect_flag("causal", false);
  config.expect_flag("use_rms_norm", false);
  config.expect_flag("qkv_proj_bias", false);
  config.expect_flag("mlp_fc1_bias", false);
  config.expect_flag("mlp_fc2_bias", false);
  config.expect_flag("rotary_emb_interleaved", false);
  config.expect_number("rotary_emb_fraction", 1);
  config.expect_text("activation_function", "swiglu");
  config.expect_flag("scale_attn_by_inverse_layer_idx", false);
  config.expect_flag("scale_attn_weights", true);
  if (config.has("rotary_emb_scale_base")) config.refuse("rotary_emb_scale_base", "no value");
}

Design read_design(const FamilyConfig& config) {
  const bool own = has_own_options(config);
  Design design;
  design.family = "nomic_bert";
  design.model_type = config.raw().model_type();
  design.vocab_size = config.size({"vocab_size"}, 30528);
  design.hidden_size = config.size({"hidden_size", "n_embd"}, 768);
  design.embedding_size = design.hidden_size;
  design.num_hidden_layers = config.layers({"num_hidden_layers", "n_layer"}, 12);
  design.num_attention_heads = config.size({"num_attention_heads", "n_head"}, 12);
  design.intermediate_size = config.size({"intermediate_size", "n_inner"}, 3072);
  design.max_position_embeddings = config.size({"max_position_embeddings", "n_positions"}, 2048);
  design.type_vocab_size = config.count({"type_vocab_size"}, 2);
  design.pad_token_id = config.has("pad_token_id") ? config.optional_count("pad_token_id") : 0;
  read_mask_token(design, config);
  design.norm.epsilon = config.positive(own ? "layer_norm_epsilon" : "layer_norm_eps", 1e-12);
  design.embedding_norm = design.norm;
  design.activation = own ? kernel::Activation::kSwish : config.activation("hidden_act", "silu");
  design.gated = true;
  design.position = PositionType::kRotary;
  split_heads(design, config, "hidden_size", "num_attention_heads");
  if (config.has("head_dim")) design.head_size = config.size({"head_dim"}, 1);
  if (own) check_own_options(config);
  RotaryDefaults defaults{.theta = 1000};
  if (own) defaults.theta_name = "rotary_emb_base";
  LayerDesign layer;
  layer.rotary =
      read_rotary(config, defaults, design.head_size, design.max_position_embeddings, design.notes);
  fill_layers(design, layer);
  return design;
}

ModelPlan make_plan(const FamilyConfig& config) {
  ModelPlan plan;
  plan.prefix = has_own_options(config) ? "bert." : "nomic_bert.";
  plan.design = read_design(config);
  plan.rows = {{"~embeddings.word_embeddings", {Role::kWordTable}, Parts::kWeight}};
  if (plan.design.type_vocab_size > 0)
    plan.rows.push_back(
        {"~embeddings.token_type_embeddings", {Role::kSegmentTable}, Parts::kWeight});
  const std::string layer = "~encoder.layers.{l}.";
  append(plan.rows,
         {{"~emb_ln", {Role::kEmbeddingNorm}},
          {layer + "attn.Wqkv", {Role::kQuery, Role::kKey, Role::kValue}, Parts::kWeight},
          {layer + "attn.out_proj", {Role::kOutput}, Parts::kWeight},
          {layer + "norm1", {Role::kAttentionNorm}},
          {layer + "mlp.fc11", {Role::kUp}, Parts::kWeight},
          {layer + "mlp.fc12", {Role::kGate}, Parts::kWeight},
          {layer + "mlp.fc2", {Role::kDown}, Parts::kWeight},
          {layer + "norm2", {Role::kFeedForwardNorm}}});
  HeadPlan head = bert_head(plan.design, config);
  head.rows[1].name = "cls.predictions.transform.layer_norm";
  plan.heads = {std::move(head)};
  plan.buffers = embedding_buffers();
  plan.buffers.push_back({".rotary_emb.inv_freq"});
  return plan;
}

const Family kFamily{
    .name = "nomic_bert",
    .model_types = {"nomic_bert"},
    .classes = {"NomicBert"},
    .heads = {{HeadKind::kMasked, "ForMaskedLM"}},
    .loads = "NomicBERT, with the masked-LM head or without",
    .plan = make_plan,
};
const FamilyRegistration kRegistration{kFamily};

}  // namespace
}  // namespace masque::model
