// BERT: post-norm encoder with learned positions. Devlin 2018, arXiv:1810.04805. MiniLM and the
// exports of sentence-transformers are the same without prefix and head.
#include "model/encoder_family.hpp"

namespace masque::model {
namespace {

ModelPlan make_plan(const FamilyConfig& config) {
  ModelPlan plan;
  plan.prefix = "bert.";
  plan.design = encoder_design(config, "bert", {});
  read_is_decoder(plan.design, config);
  plan.rows = embedding_rows(plan.design);
  append(plan.rows, encoder_layer_rows());
  plan.heads = {bert_head(plan.design, config)};
  plan.buffers = embedding_buffers();
  return plan;
}

const Family kFamily{
    .name = "bert",
    .model_types = {"bert"},
    .classes = {"Bert"},
    .heads = {{HeadKind::kMasked, "ForMaskedLM"}, {HeadKind::kCausal, "LMHeadModel"}},
    .loads = "BERT, with its masked-LM (or, is_decoder, causal) head or without; MiniLM",
    .plan = make_plan,
    .files = {.lm_classes = {"ForPreTraining"}},
};
const FamilyRegistration kRegistration{kFamily};

}  // namespace
}  // namespace masque::model
