// FNet: BERT whose tokens are mixed by a Fourier transform instead of attention. Lee-Thorp 2021,
// arXiv:2105.03824.
#include <string>

#include "model/encoder_family.hpp"
#include "model/variants.hpp"

namespace masque::model {
namespace {

ModelPlan make_plan(const FamilyConfig& config) {
  ModelPlan plan;
  plan.prefix = "fnet.";
  Design& design = plan.design;
  design = encoder_design(config, "fnet",
                          {.vocab_size = 32000,
                           .num_attention_heads = 1,
                           .type_vocab_size = 4,
                           .hidden_act = "gelu_new",
                           .pad_token_id = 3});
  // A transform of fixed length, cut off for shorter texts.
  config.expect_flag("use_tpu_fourier_optimizations", false);
  design.variants.mixer = mixer_named("fnet");
  design.variants.mixer_output = false;
  const std::string layer = "~encoder.layer.{l}.";
  plan.rows = embedding_rows(design);
  append(plan.rows, {{"~embeddings.projection", {Role::kEmbeddingProjection}},
                     {layer + "fourier.output.LayerNorm", {Role::kAttentionNorm}},
                     {layer + "intermediate.dense", {Role::kUp}},
                     {layer + "output.dense", {Role::kDown}},
                     {layer + "output.LayerNorm", {Role::kFeedForwardNorm}}});
  plan.heads = {bert_head(design, config)};
  plan.buffers = embedding_buffers();
  return plan;
}

const Family kFamily{
    .name = "fnet",
    .model_types = {"fnet"},
    .classes = {"FNet"},
    .heads = {{HeadKind::kMasked, "ForMaskedLM"}},
    .loads = "FNet, with the masked-LM head or without",
    .plan = make_plan,
    .files = {.lm_classes = {"ForPreTraining"}},
};
const FamilyRegistration kRegistration{kFamily};

}  // namespace
}  // namespace masque::model
