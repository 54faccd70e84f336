// T-TA: BERT's names, another way to run them. Queries start without tokens; keys and values of
// every layer are made of the embeddings; no position reads itself. Shin 2020, arXiv:2004.08097.
#include "model/encoder_family.hpp"

namespace masque::model {
namespace {

ModelPlan make_plan(const FamilyConfig& config) {
  ModelPlan plan;
  plan.prefix = "bert.";
  Design& design = plan.design;
  const bool over_bert = config.raw().model_type() != "tta";
  design = encoder_design(config, "tta", {.type_vocab_size = over_bert ? 2 : 0});
  config.expect_flag("is_decoder", false);
  config.expect_flag("add_cross_attention", false);
  plan.heads = {bert_head(design, config)};
  design.streams = Streams::kFixedKeys;
  design.mask = DefaultMask::kOthers;
  plan.rows = embedding_rows(design);
  append(plan.rows, encoder_layer_rows());
  plan.buffers = embedding_buffers();
  return plan;
}

const Family kFamily{
    .name = "tta",
    .model_types = {"tta"},
    .classes = {"TTA"},
    .heads = {{HeadKind::kMasked, "ForMaskedLM"}},
    .loads = "T-TA; any BERT if the family is given",
    .plan = make_plan,
    .also_reads = "bert",
};
const FamilyRegistration kRegistration{kFamily};

}  // namespace
}  // namespace masque::model
