// NeoBERT: pre-norm encoder with rotary positions, gated feed-forward layers and an untied head. Le
// Breton 2025, arXiv:2502.19587. The authors' own code; transformers has no such class.
#include <cmath>
#include <string>

#include "model/encoder_family.hpp"
#include "model/rotary_config.hpp"

namespace masque::model {
namespace {

constexpr double kNeoBertTheta = 10000;

/// Width of the feed-forward layers: two thirds of the option, up to a multiple of 8.
Index neobert_inner_size(Index option) {
  constexpr Index kMultiple = 8;
  return (2 * option / 3 + kMultiple - 1) / kMultiple * kMultiple;
}

Design read_design(const FamilyConfig& config) {
  Design design;
  design.family = "neobert";
  design.model_type = config.raw().model_type();
  design.vocab_size = config.size({"vocab_size"}, 30522);
  design.hidden_size = config.size({"hidden_size"}, 768);
  design.embedding_size = design.hidden_size;
  design.num_hidden_layers = config.layers({"num_hidden_layers"}, 28);
  design.num_attention_heads = config.size({"num_attention_heads"}, 12);
  design.intermediate_size = neobert_inner_size(config.size({"intermediate_size"}, 3072));
  design.max_position_embeddings = config.size({"max_length"}, 1024);
  design.pad_token_id = config.has("pad_token_id") ? config.optional_count("pad_token_id") : 0;
  read_mask_token(design, config);
  design.norm_placement = NormPlacement::kPre;
  design.norm = {.kind = kernel::Norm::kRms, .epsilon = config.positive("norm_eps", 1e-6)};
  design.final_norm = true;
  design.activation = kernel::Activation::kSwish;
  design.gated = true;
  design.position = PositionType::kRotary;
  // Options of the code that trained it, which its files name and their class does not read.
  config.expect_flag("rope", true);
  config.expect_flag("rms_norm", true);
  config.expect_flag("ngpt", false);
  if (config.has("hidden_act")) config.expect_text("hidden_act", "SwiGLU");
  split_heads(design, config, "hidden_size", "num_attention_heads");
  check_rotary_size(config, "num_attention_heads", design.head_size);
  LayerDesign layer;
  layer.rotary = float_rotary(kNeoBertTheta, design.head_size);
  layer.rotary.layout = kernel::RotaryLayout::kAdjacent;
  fill_layers(design, layer);
  return design;
}

ModelPlan make_plan(const FamilyConfig& config) {
  ModelPlan plan;
  plan.prefix = "model.";
  plan.design = read_design(config);
  const std::string layer = "~transformer_encoder.{l}.";
  plan.rows = {{"~encoder", {Role::kWordTable}, Parts::kWeight},
               {layer + "attention_norm", {Role::kAttentionNorm}, Parts::kWeight},
               {layer + "qkv",
                {Role::kQuery, Role::kKey, Role::kValue},
                Parts::kWeight,
                TensorLayout::kHeadGroups},
               {layer + "wo", {Role::kOutput}, Parts::kWeight},
               {layer + "ffn_norm", {Role::kFeedForwardNorm}, Parts::kWeight},
               {layer + "ffn.w12", {Role::kGate, Role::kUp}, Parts::kWeight},
               {layer + "ffn.w3", {Role::kDown}, Parts::kWeight},
               {"~layer_norm", {Role::kFinalNorm}, Parts::kWeight}};
  HeadPlan head;
  head.design.kind = HeadKind::kMasked;
  head.design.tied = false;  // whatever tie_word_embeddings says
  head.what = "masked-LM head";
  head.evidence = "decoder.weight";
  head.decoder = "decoder.weight";
  head.rows = {{"decoder.bias", {Role::kDecoder}, Parts::kBiasTensor}};
  plan.heads = {head};
  plan.buffers = {{"freqs_cis"}};
  return plan;
}

const Family kFamily{
    .name = "neobert",
    .model_types = {"neobert"},
    .classes = {"NeoBERT"},
    .heads = {{HeadKind::kMasked, "LMHead"}},
    .loads = "NeoBERT, with the masked-LM head or without",
    .plan = make_plan,
    .starts = unpadded_starts,
    .base_classes = "NeoBERT",
};
const FamilyRegistration kRegistration{kFamily};

}  // namespace
}  // namespace masque::model
