// NomicBERT: post-norm encoder with rotary positions, gated feed-forward layers and no biases.
// Nussbaum 2024, arXiv:2402.01613. The authors' own files have options as GPT-2's.
#include <string>
#include <utility>

#include <fmt/format.h>

#include "model/encoder_family.hpp"
#include "model/rotary_config.hpp"

namespace masque::model {
namespace {

/// How many positions the authors' code takes for trained unless it is told.
constexpr Index kTrainedPositions = 2048;

/// Whether `config` is of the authors' files. What transformers writes of them has its own options
/// as well, which are those that it reads.
bool has_own_options(const FamilyConfig& config) {
  return config.has("n_embd") && !config.has("hidden_size");
}

/// Throws InputError for options of the authors' code that masque does not have. Of their files
/// (`own`) an absent option has the default of their class.
void check_own_options(const FamilyConfig& config, bool own) {
  const auto expect = [&](std::string_view name, bool fallback) {
    if (config.flag(name, own && fallback)) config.refuse(name, "false, the only supported value");
  };
  for (const char* name : {"prenorm", "parallel_block", "causal", "use_rms_norm",
                           "rotary_emb_interleaved", "scale_attn_by_inverse_layer_idx"})
    expect(name, false);
  for (const char* name : {"qkv_proj_bias", "mlp_fc1_bias", "mlp_fc2_bias"}) expect(name, true);
  if (config.number("rotary_emb_fraction", own ? 0 : 1) != 1)
    config.refuse("rotary_emb_fraction", "1, the only supported value");
  if (config.text("activation_function", own ? "gelu_new" : "swiglu") != "swiglu")
    config.refuse("activation_function", "\"swiglu\", the only supported value");
  config.expect_flag("scale_attn_weights", true);
  if (config.has("rotary_emb_scale_base")) config.refuse("rotary_emb_scale_base", "no value");
}

/// Texts of up to max_trained_positions tokens have the same angles with rotary_scaling_factor as
/// without.
void limit_positions(Design& design, const FamilyConfig& config) {
  if (!config.has("rotary_scaling_factor")) return;
  config.positive("rotary_scaling_factor", 1);
  const Index trained = config.size({"max_trained_positions"}, kTrainedPositions);
  if (trained >= design.max_position_embeddings) return;
  design.max_position_embeddings = trained;
  design.notes.push_back(
      fmt::format("rotary_scaling_factor changes the angles of texts of more than {} tokens "
                  "(max_trained_positions): these are not supported",
                  trained));
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
  design.intermediate_size =
      config.size({"intermediate_size", "n_inner"}, own ? 4 * design.hidden_size : 3072);
  design.max_position_embeddings =
      config.size({"max_position_embeddings", "n_positions"}, own ? 1024 : 2048);
  design.type_vocab_size = config.count({"type_vocab_size"}, 2);
  design.pad_token_id = config.has("pad_token_id") ? config.optional_count("pad_token_id") : 0;
  read_mask_token(design, config);
  design.norm.epsilon =
      own ? config.positive("layer_norm_epsilon", 1e-5) : config.positive("layer_norm_eps", 1e-12);
  design.embedding_norm = design.norm;
  design.activation = own ? kernel::Activation::kSwish : config.activation("hidden_act", "silu");
  design.gated = true;
  design.position = PositionType::kRotary;
  split_heads(design, config, "hidden_size", "num_attention_heads");
  if (config.has("head_dim")) design.head_size = config.size({"head_dim"}, 1);
  check_own_options(config, own);
  if (own) limit_positions(design, config);
  RotaryDefaults defaults{.theta = 1000};
  if (own) {
    defaults.theta = 10000;
    defaults.theta_name = "rotary_emb_base";
  }
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
  // As all its dense layers, those of the head have no biases in the authors' code.
  if (has_own_options(config)) {
    head.rows[0].parts = Parts::kWeight;
    head.rows.pop_back();
  }
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
