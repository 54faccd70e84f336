// ESM-1b and ESM-2: pre-norm encoders of protein sequences, with learned or rotary positions. Token
// dropout rescales the embeddings of a text by its share of masks. Rives 2021,
// doi:10.1073/pnas.2016239118; Lin 2023, doi:10.1126/science.ade2574.
#include <string>
#include <utility>
#include <vector>

#include "model/encoder_family.hpp"
#include "model/rotary_config.hpp"

namespace masque::model {
namespace {

/// The share of masks that token dropout takes for that of training: 15 % of the tokens, 80 % of
/// these as masks.
constexpr double kTrainedMasks = 0.15 * 0.8;

constexpr double kTheta = 10000;

void read_positions(Design& design, const FamilyConfig& config) {
  if (config.text("position_embedding_type", "absolute") == "rotary") {
    design.position = PositionType::kRotary;
    design.max_position_embeddings = 0;
    check_rotary_size(config, "num_attention_heads", design.head_size);
    for (LayerDesign& layer : design.layers) layer.rotary = float_rotary(kTheta, design.head_size);
    return;
  }
  config.expect_text("position_embedding_type", "absolute");
  if (config.is_null("pad_token_id")) config.refuse("pad_token_id", "a token id");
  design.position_offset = *design.pad_token_id + 1;
  if (design.max_position_embeddings <= design.position_offset)
    config.refuse("max_position_embeddings", "more than pad_token_id + 1");
  design.max_position_embeddings -= design.position_offset;
}

std::vector<TensorRow> rows_of(const Design& design) {
  std::vector<TensorRow> rows{{"~embeddings.word_embeddings", {Role::kWordTable}, Parts::kWeight}};
  if (design.position == PositionType::kLearned)
    rows.push_back({"~embeddings.position_embeddings", {Role::kPositionTable}, Parts::kWeight});
  if (design.embedding_norm) rows.push_back({"~embeddings.layer_norm", {Role::kEmbeddingNorm}});
  const std::string layer = "~encoder.layer.{l}.";
  append(rows, {{layer + "attention.LayerNorm", {Role::kAttentionNorm}},
                {layer + "attention.self.query", {Role::kQuery}},
                {layer + "attention.self.key", {Role::kKey}},
                {layer + "attention.self.value", {Role::kValue}},
                {layer + "attention.output.dense", {Role::kOutput}},
                {layer + "LayerNorm", {Role::kFeedForwardNorm}},
                {layer + "intermediate.dense", {Role::kUp}},
                {layer + "output.dense", {Role::kDown}},
                {"~encoder.emb_layer_norm_after", {Role::kFinalNorm}}});
  return rows;
}

ModelPlan make_plan(const FamilyConfig& config) {
  config.expect_flag("is_folding_model", false);
  ModelPlan plan;
  plan.prefix = "esm.";
  Design& design = plan.design;
  design = encoder_design(config, "esm",
                          {.vocab_size = 33,
                           .max_position_embeddings = 1026,
                           .type_vocab_size = 0,
                           .pad_token_id = 1,
                           .any_position = true});
  // What transformers does not read.
  design.type_vocab_size = 0;
  design.activation = kernel::Activation::kGelu;
  design.norm_placement = NormPlacement::kPre;
  design.final_norm = true;
  if (!config.flag("emb_layer_norm_before", false)) design.embedding_norm.reset();
  read_positions(design, config);
  if (config.flag("token_dropout", false)) {
    if (!design.mask_token_id) config.refuse("mask_token_id", "a token id, with token_dropout");
    design.token_dropout = kTrainedMasks;
    design.notes.emplace_back(
        "token_dropout: the embeddings of a text are multiplied by 0.88 / (1 - its share of "
        "masks)");
  }
  plan.rows = rows_of(design);
  HeadPlan head = roberta_head(design, config);
  head.rows.back().name = "lm_head.bias";
  plan.heads = {std::move(head)};
  plan.skipped = {{"esm.contact_head.", "the head of contacts", true},
                  {"contact_head.", "the head of contacts", true}};
  plan.buffers = embedding_buffers(false);
  plan.buffers.push_back({".rotary_embeddings.inv_freq"});
  if (design.position == PositionType::kRotary)
    plan.buffers.push_back({"embeddings.position_embeddings.weight"});
  return plan;
}

const Family kFamily{
    .name = "esm",
    .model_types = {"esm"},
    .classes = {"Esm"},
    .heads = {{HeadKind::kMasked, "ForMaskedLM"}},
    .loads = "ESM-1b and ESM-2, with the masked-LM head or without",
    .plan = make_plan,
    .starts = padded_position_starts,
    .files = {.wide_configs =
                  {R"("emb_layer_norm_before": true, "pad_token_id": 1, "mask_token_id": 32)"}},
};
const FamilyRegistration kRegistration{kFamily};

}  // namespace
}  // namespace masque::model
