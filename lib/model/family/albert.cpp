// ALBERT: layers in groups that share weights, embeddings narrower than the layers. Lan 2019,
// arXiv:1909.11942.
#include <fmt/format.h>

#include "model/encoder_family.hpp"

namespace masque::model {
namespace {

constexpr Index kMostLayers = 1000;

// In floating point, as in transformers: a few numbers of groups come out one lower.
Index group_of(Index layer, Index layers, Index groups) {
  return static_cast<Index>(static_cast<double>(layer) /
                            (static_cast<double>(layers) / static_cast<double>(groups)));
}

Design read_design(const FamilyConfig& config, Index groups, Index inner) {
  Design design = encoder_design(config, "albert",
                                 {.vocab_size = 30000,
                                  .hidden_size = 4096,
                                  .num_attention_heads = 64,
                                  .intermediate_size = 16384,
                                  .hidden_act = "gelu_new"});
  design.embedding_size = config.size({"embedding_size"}, 128);
  const Index repeats = design.num_hidden_layers;
  if (groups > repeats) config.refuse("num_hidden_groups", "at most num_hidden_layers");
  if (repeats * inner > kMostLayers) config.refuse("inner_group_num", "at most 1000 layers in all");
  design.num_hidden_layers = repeats * inner;
  fill_layers(design);
  for (Index i = 0; i < design.num_hidden_layers; ++i) {
    design.layers[static_cast<std::size_t>(i)].weights =
        group_of(i / inner, repeats, groups) * inner + i % inner;
  }
  return design;
}

std::vector<TensorRow> layer_rows(Index group, Index within, Index layer) {
  const std::string name =
      fmt::format("~encoder.albert_layer_groups.{}.albert_layers.{}.", group, within);
  std::vector<TensorRow> rows{
      {name + "attention.query", {Role::kQuery}},
      {name + "attention.key", {Role::kKey}},
      {name + "attention.value", {Role::kValue}},
      {name + "attention.dense", {Role::kOutput}},
      {name + "attention.LayerNorm", {Role::kAttentionNorm}},
      {name + "ffn", {Role::kUp}},
      {name + "ffn_output", {Role::kDown}},
      {name + "full_layer_layer_norm", {Role::kFeedForwardNorm}},
  };
  for (TensorRow& row : rows) row.layer = layer;
  return rows;
}

ModelPlan make_plan(const FamilyConfig& config) {
  ModelPlan plan;
  plan.prefix = "albert.";
  const Index groups = config.layers({"num_hidden_groups"}, 1);
  const Index inner = config.layers({"inner_group_num"}, 1);
  plan.design = read_design(config, groups, inner);
  plan.rows = embedding_rows(plan.design);
  plan.rows.push_back({"~encoder.embedding_hidden_mapping_in", {Role::kEmbeddingProjection}});
  for (Index layer = 0; layer < groups * inner; ++layer) {
    append(plan.rows, layer_rows(layer / inner, layer % inner, layer));
  }
  plan.heads = {{
      .design = transform_head(plan.design, config, plan.design.activation),
      .what = "masked-LM head",
      .evidence = "predictions.dense.weight|predictions.bias",
      .decoder = "predictions.decoder.weight",
      .rows = {{"predictions.dense", {Role::kHeadTransform}},
               {"predictions.LayerNorm", {Role::kHeadNorm}},
               {"predictions.decoder.bias|predictions.bias", {Role::kDecoder}, Parts::kBiasTensor}},
  }};
  plan.buffers = embedding_buffers();
  return plan;
}

const Family kFamily{
    .name = "albert",
    .model_types = {"albert"},
    .classes = {"Albert"},
    .heads = {{HeadKind::kMasked, "ForMaskedLM"}},
    .loads = "ALBERT, with its masked-LM head or without; any number of groups",
    .plan = make_plan,
    .files = {.lm_classes = {"ForPreTraining"}},
};
const FamilyRegistration kRegistration{kFamily};

}  // namespace
}  // namespace masque::model
