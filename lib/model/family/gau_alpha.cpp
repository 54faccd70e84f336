// GAU-α: gated attention units, RMS norms without weights, no biases. Hua 2022, arXiv:2202.10447;
// Su 2022, kexue.fm/archives/9052. Names of JunnYu/GAU-alpha-pytorch.
#include <cmath>

#include "model/encoder_family.hpp"
#include "model/rotary_config.hpp"

namespace masque::model {
namespace {

std::string read_normalizer(const FamilyConfig& config) {
  std::string name = config.text("normalization", "softmax_plus");
  if (name != "softmax_plus" && name != "softmax" && name != "squared_relu") {
    config.refuse("normalization", "\"softmax_plus\", \"softmax\" or \"squared_relu\"");
  }
  return name;
}

Design read_design(const FamilyConfig& config) {
  Design design;
  design.family = "gau_alpha";
  design.model_type = config.raw().model_type();
  design.vocab_size = config.size({"vocab_size"}, 12000);
  design.hidden_size = config.size({"hidden_size"}, 768);
  config.expect_number("embedding_size", static_cast<double>(design.hidden_size));
  design.embedding_size = design.hidden_size;
  design.num_hidden_layers = config.layers({"num_hidden_layers"}, 24);
  design.intermediate_size = config.size({"intermediate_size"}, 1536);
  design.attention_key_size = config.size({"attention_key_size"}, 128);
  design.head_size = design.attention_key_size;
  design.type_vocab_size = config.count({"type_vocab_size"}, 2);
  design.max_position_embeddings = config.size({"max_position_embeddings"}, 512);
  design.pad_token_id = config.has("pad_token_id") ? config.optional_count("pad_token_id") : 0;
  read_mask_token(design, config);
  design.layer_kind = LayerKind::kGatedAttention;
  design.norm = {kernel::Norm::kRms, config.positive("layer_norm_eps", 1e-12)};
  design.embedding_norm = design.norm;
  design.norm_weights = false;
  design.use_bias = config.flag("use_bias", false);
  design.activation = config.activation("hidden_act", "swish");
  design.normalizer = read_normalizer(config);
  if (config.flag("attention_scale", true)) {
    design.attention_scale = 1 / std::sqrt(static_cast<double>(design.attention_key_size));
  }
  design.position = PositionType::kRotary;
  check_rotary_size(config, "attention_key_size", design.head_size);
  LayerDesign layer;
  layer.rotary = plain_rotary(kernel::RotaryLayout::kAdjacent, 10000, design.head_size);
  fill_layers(design, layer);
  return design;
}

std::vector<TensorRow> offset_rows(bool bias) {
  const std::string layer = "~encoder.layer.{l}.gau.";
  std::vector<TensorRow> rows;
  for (const char* which : {"q", "k"}) {
    const std::string name = layer + which + "_scaleoffset";
    rows.push_back({name, {Role::kGatedGamma}, Parts::kWeight, TensorLayout::kNextRow});
    if (!bias) continue;
    rows.push_back({name + ".bias", {Role::kGatedBeta}, Parts::kTensor, TensorLayout::kNextRow});
  }
  return rows;
}

ModelPlan make_plan(const FamilyConfig& config) {
  ModelPlan plan;
  plan.prefix = "gau_alpha.";
  plan.design = read_design(config);
  const bool bias = plan.design.use_bias;
  const Parts parts = bias ? Parts::kBoth : Parts::kWeight;
  plan.rows = {{"~embeddings.word_embeddings", {Role::kWordTable}, Parts::kWeight}};
  if (plan.design.type_vocab_size > 0) {
    plan.rows.push_back(
        {"~embeddings.token_type_embeddings", {Role::kSegmentTable}, Parts::kWeight});
  }
  plan.rows.push_back({"~encoder.layer.{l}.gau.i_dense", {Role::kGatedInput}, parts});
  plan.rows.push_back({"~encoder.layer.{l}.gau.o_dense", {Role::kOutput}, parts});
  append(plan.rows, offset_rows(bias));
  const HeadDesign head = vocabulary_head(plan.design, config);
  plan.heads = {bare_head(head, config, "masked-LM head", "cls.predictions.decoder.weight")};
  plan.buffers = embedding_buffers(false);
  plan.buffers.push_back({"encoder.embed_positions.weight"});
  return plan;
}

const Family kFamily{
    .name = "gau_alpha",
    .model_types = {"gau_alpha"},
    .classes = {"GAUAlpha"},
    .heads = {{HeadKind::kMasked, "ForMaskedLM"}},
    .loads = "GAU-alpha, with its masked-LM head",
    .plan = make_plan,
    .files = {.wide_configs = {R"("use_bias": true)"}},
};
const FamilyRegistration kRegistration{kFamily};

}  // namespace
}  // namespace masque::model
