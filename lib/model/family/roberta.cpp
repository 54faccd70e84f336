// RoBERTa and what came of it: BERT whose positions count from the padding id + 1. Liu 2019,
// arXiv:1907.11692; XLM-R 2019, arXiv:1911.02116; CamemBERT 2019, arXiv:1911.03894.
#include "model/encoder_family.hpp"

namespace masque::model {
namespace {

ModelPlan make_plan(const FamilyConfig& config) {
  ModelPlan plan;
  plan.prefix = "roberta.";
  Design& design = plan.design;
  design = encoder_design(config, "roberta",
                          {.vocab_size = config.raw().model_type() == "xlm-roberta" ||
                                                 config.raw().model_type() == "camembert"
                                             ? 30522
                                             : 50265,
                           .pad_token_id = 1});
  read_is_decoder(design, config);
  if (!design.pad_token_id) config.refuse("pad_token_id", "a token id");
  design.position_offset = *design.pad_token_id + 1;
  if (design.max_position_embeddings <= design.position_offset) {
    config.refuse("max_position_embeddings", "more than pad_token_id + 1");
  }
  design.max_position_embeddings -= design.position_offset;
  plan.rows = embedding_rows(design);
  append(plan.rows, encoder_layer_rows());
  plan.heads = {roberta_head(design, config)};
  plan.buffers = embedding_buffers();
  return plan;
}

const Family kFamily{
    .name = "roberta",
    .model_types = {"roberta", "xlm-roberta", "camembert"},
    .classes = {"Roberta", "XLMRoberta", "Camembert"},
    .heads = {{HeadKind::kMasked, "ForMaskedLM"}, {HeadKind::kCausal, "ForCausalLM"}},
    .loads = "RoBERTa, XLM-R, CamemBERT, with the masked-LM head or without",
    .plan = make_plan,
    .starts = padded_position_starts,
};
const FamilyRegistration kRegistration{kFamily};

}  // namespace
}  // namespace masque::model
