// ELECTRA: generator and discriminator, encoders like BERT with narrower embeddings. Clark 2020,
// arXiv:2003.10555.
#include "model/encoder_family.hpp"

namespace masque::model {
namespace {

HeadPlan generator(const Design& design, const FamilyConfig& config) {
  return {
      .design = transform_head(design, config, kernel::Activation::kGelu),
      .what = "masked-LM head",
      .evidence = "generator_predictions.dense.weight|generator_lm_head.bias",
      .decoder = "generator_lm_head.weight",
      .rows = {{"generator_predictions.dense", {Role::kHeadTransform}},
               {"generator_predictions.LayerNorm", {Role::kHeadNorm}},
               {"generator_lm_head.bias", {Role::kDecoder}, Parts::kBiasTensor}},
  };
}

HeadPlan discriminator(const Design& design) {
  HeadDesign head;
  head.kind = HeadKind::kDiscriminator;
  head.transform = true;
  head.activation = design.activation;
  head.tied = false;
  return {
      .design = head,
      .what = "discriminator head",
      .evidence = "discriminator_predictions.dense.weight",
      .decoder = "discriminator_predictions.dense_prediction.weight",
      .rows = {{"discriminator_predictions.dense", {Role::kHeadTransform}},
               {"discriminator_predictions.dense_prediction.bias",
                {Role::kDecoder},
                Parts::kBiasTensor}},
  };
}

ModelPlan make_plan(const FamilyConfig& config) {
  ModelPlan plan;
  plan.prefix = "electra.";
  Design& design = plan.design;
  design = encoder_design(
      config, "electra", {.hidden_size = 256, .num_attention_heads = 4, .intermediate_size = 1024});
  design.embedding_size = config.size({"embedding_size"}, 128);
  read_is_decoder(design, config);
  plan.rows = embedding_rows(design);
  if (design.embedding_size != design.hidden_size) {
    plan.rows.push_back({"~embeddings_project", {Role::kEmbeddingProjection}});
  }
  append(plan.rows, encoder_layer_rows());
  plan.heads = {generator(design, config), discriminator(design)};
  plan.buffers = embedding_buffers();
  return plan;
}

const Family kFamily{
    .name = "electra",
    .model_types = {"electra"},
    .classes = {"Electra"},
    .heads = {{HeadKind::kMasked, "ForMaskedLM"},
              {HeadKind::kCausal, "ForCausalLM"},
              {HeadKind::kDiscriminator, "ForPreTraining"}},
    .loads = "ELECTRA: generator, discriminator, or the encoder alone",
    .plan = make_plan,
};
const FamilyRegistration kRegistration{kFamily};

}  // namespace
}  // namespace masque::model
