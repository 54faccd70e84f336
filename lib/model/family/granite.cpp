// Granite: Llama with numbers that multiply embeddings, scores, what parts of layers give, and
// logits. Granite Team 2024; the numbers: Yang 2022, arXiv:2203.03466.
#include <utility>

#include "model/decoder_family.hpp"

namespace masque::model {
namespace {

ModelPlan make_plan(const FamilyConfig& config) {
  Design design = decoder_design(config, "granite", {});
  set_angles(design, config, whole_heads());
  design.embedding_scale = config.positive("embedding_multiplier", 1);
  design.attention_scale = config.positive("attention_multiplier", 1);
  design.residual_multiplier = config.positive("residual_multiplier", 1);
  const double divisor = config.positive("logits_scaling", 1);
  ModelPlan plan =
      decoder_plan(std::move(design), config, llama_rows(parts_by_config(config)), false);
  plan.heads.front().design.scale = 1 / divisor;
  return plan;
}

const Family kFamily{
    .name = "granite",
    .model_types = {"granite"},
    .classes = {"Granite"},
    .heads = {{HeadKind::kCausal, "ForCausalLM"}},
    .loads = "Granite (dense), with the causal-LM head or without",
    .plan = make_plan,
    .files = {.wide_configs = {R"("attention_bias": true, "mlp_bias": true)"}},
    .like = "llama",
};
const FamilyRegistration kRegistration{kFamily};

}  // namespace
}  // namespace masque::model
