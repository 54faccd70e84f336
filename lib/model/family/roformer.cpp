// RoFormer: BERT whose queries and keys are rotated by their positions. Su 2021, arXiv:2104.09864.
// RoFormerV2 (`norm_type` rms_norm): no biases, RMS norms without weights, a head that is the
// vocabulary matrix alone. ZhuiyiTechnology/roformer-v2, in the names of JunnYu/RoFormer_pytorch.
#include "model/encoder_family.hpp"
#include "model/rotary_config.hpp"

namespace masque::model {
namespace {

Design read_design(const FamilyConfig& config) {
  Design design =
      encoder_design(config, "roformer", {.vocab_size = 50000, .max_position_embeddings = 1536});
  design.embedding_size = config.size({"embedding_size"}, design.hidden_size);
  read_is_decoder(design, config);
  design.position = PositionType::kRotary;
  check_rotary_size(config, "num_attention_heads", design.head_size);
  LayerDesign layer;
  layer.rotary = plain_rotary(kernel::RotaryLayout::kAdjacent, 10000, design.head_size);
  layer.rotary.values = config.flag("rotary_value", false);
  fill_layers(design, layer);
  return design;
}

void make_second_version(ModelPlan& plan, const FamilyConfig& config) {
  plan.design.norm.kind = kernel::Norm::kRms;
  plan.design.embedding_norm = plan.design.norm;
  plan.design.norm_weights = false;
  plan.design.use_bias = false;
  std::erase_if(plan.rows, [](const TensorRow& row) { return is_norm(row.roles[0]); });
  for (TensorRow& row : plan.rows) row.parts = Parts::kWeight;
  const HeadDesign head = vocabulary_head(plan.design, config);
  plan.heads = {bare_head(head, config, "masked-LM head", "cls.predictions.decoder.weight")};
}

ModelPlan make_plan(const FamilyConfig& config) {
  ModelPlan plan;
  plan.prefix = "roformer.";
  plan.design = read_design(config);
  const std::string norm = config.text("norm_type", "layer_norm");
  if (norm != "layer_norm" && norm != "rms_norm") {
    config.refuse("norm_type", "\"layer_norm\" or \"rms_norm\"");
  }
  const bool second = norm == "rms_norm";
  if (config.flag("use_bias", !second) == second) {
    config.refuse("use_bias",
                  second ? "false with norm_type rms_norm" : "true with norm_type layer_norm");
  }
  plan.rows = embedding_rows(plan.design, false);
  if (plan.design.embedding_size != plan.design.hidden_size) {
    plan.rows.push_back({"~embeddings_project", {Role::kEmbeddingProjection}});
  }
  append(plan.rows, encoder_layer_rows());
  plan.heads = {bert_head(plan.design, config)};
  if (second) make_second_version(plan, config);
  plan.buffers = embedding_buffers(false);
  plan.buffers.push_back({"encoder.embed_positions.weight"});
  const auto rows = static_cast<std::uint64_t>(plan.design.max_position_embeddings);
  const auto columns = static_cast<std::uint64_t>(plan.design.head_size);
  plan.computed = {
      {"~encoder.embed_positions.weight", {rows, columns}, {.kind = StartValue::Kind::kSines}}};
  return plan;
}

const Family kFamily{
    .name = "roformer",
    .model_types = {"roformer"},
    .classes = {"RoFormer"},
    .heads = {{HeadKind::kMasked, "ForMaskedLM"}, {HeadKind::kCausal, "ForCausalLM"}},
    .loads = "RoFormer and RoFormerV2, with the masked-LM (or causal) head or without",
    .plan = make_plan,
    .files = {.wide_configs = {R"("embedding_size": 128)"}},
};
const FamilyRegistration kRegistration{kFamily};

}  // namespace
}  // namespace masque::model
