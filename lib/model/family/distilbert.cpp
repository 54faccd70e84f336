// DistilBERT: BERT without token types, under names of its own. Sanh 2019, arXiv:1910.01108. Its
// sinusoids, where it has them, are stored like a learned table.
#include "model/encoder_family.hpp"

namespace masque::model {
namespace {

Design read_design(const FamilyConfig& config) {
  Design design;
  design.family = "distilbert";
  design.model_type = config.raw().model_type();
  design.vocab_size = config.size({"vocab_size"}, 30522);
  design.hidden_size = config.size({"dim", "hidden_size"}, 768);
  design.embedding_size = design.hidden_size;
  design.num_hidden_layers = config.layers({"n_layers", "num_hidden_layers"}, 6);
  design.num_attention_heads = config.size({"n_heads", "num_attention_heads"}, 12);
  design.intermediate_size = config.size({"hidden_dim"}, 3072);
  design.max_position_embeddings = config.size({"max_position_embeddings"}, 512);
  design.pad_token_id = config.optional_count("pad_token_id");
  design.embedding_norm = design.norm;
  design.activation = config.activation("activation", "gelu");
  split_heads(design, config, "dim", "n_heads");
  fill_layers(design);
  return design;
}

ModelPlan make_plan(const FamilyConfig& config) {
  ModelPlan plan;
  plan.prefix = "distilbert.";
  plan.design = read_design(config);
  plan.rows = embedding_rows(plan.design);
  const std::string layer = "~transformer.layer.{l}.";
  append(plan.rows, {
                        {layer + "attention.q_lin", {Role::kQuery}},
                        {layer + "attention.k_lin", {Role::kKey}},
                        {layer + "attention.v_lin", {Role::kValue}},
                        {layer + "attention.out_lin", {Role::kOutput}},
                        {layer + "sa_layer_norm", {Role::kAttentionNorm}},
                        {layer + "ffn.lin1", {Role::kUp}},
                        {layer + "ffn.lin2", {Role::kDown}},
                        {layer + "output_layer_norm", {Role::kFeedForwardNorm}},
                    });
  plan.heads = {{
      .design = transform_head(plan.design, config, plan.design.activation),
      .what = "masked-LM head",
      .evidence = "vocab_transform.weight|vocab_projector.bias",
      .decoder = "vocab_projector.weight",
      .rows = {{"vocab_transform", {Role::kHeadTransform}},
               {"vocab_layer_norm", {Role::kHeadNorm}},
               {"vocab_projector.bias", {Role::kDecoder}, Parts::kBiasTensor}},
  }};
  plan.buffers = embedding_buffers(false);
  return plan;
}

/// DistilBertPreTrainedModel._init_weights.
std::vector<StartRule> distilbert_starts(const FamilyConfig& config, const Design& design) {
  Design padded = design;
  if (!design.pad_token_id) padded.pad_token_id = 0;  // the class's default
  std::vector<StartRule> rules = padded_starts(config, padded);
  if (config.flag("sinusoidal_pos_embds", false))
    rules.push_back({Role::kPositionTable, {.kind = StartValue::Kind::kAlternatingSines}});
  return rules;
}

const Family kFamily{
    .name = "distilbert",
    .model_types = {"distilbert"},
    .classes = {"DistilBert"},
    .heads = {{HeadKind::kMasked, "ForMaskedLM"}},
    .loads = "DistilBERT, with its masked-LM head or without",
    .plan = make_plan,
    .starts = distilbert_starts,
};
const FamilyRegistration kRegistration{kFamily};

}  // namespace
}  // namespace masque::model
