// EuroBERT: Llama's layers in an encoder, with a masked-LM head. Boizard 2025, arXiv:2503.05500.
#include <utility>

#include "model/decoder_family.hpp"
#include "model/encoder_family.hpp"

namespace masque::model {
namespace {

ModelPlan make_plan(const FamilyConfig& config) {
  Design design = decoder_design(config, "eurobert",
                                 {.vocab_size = 128256,
                                  .hidden_size = 768,
                                  .num_hidden_layers = 12,
                                  .num_attention_heads = 12,
                                  .intermediate_size = 3072,
                                  .max_position_embeddings = 8192,
                                  .pad_token_id = 128001,
                                  .norm_epsilon = 1e-5});
  design.mask = DefaultMask::kFull;
  read_mask_token(design, config);
  set_angles(design, config, whole_heads());
  ModelPlan plan =
      decoder_plan(std::move(design), config, llama_rows(parts_by_config(config)), false);
  if (config.flag("mlp_bias", false)) {
    HeadPlan& head = plan.heads.front();
    head.rows = {{"lm_head.bias", {Role::kDecoder}, Parts::kBiasTensor}};
    head.evidence = "lm_head.bias|lm_head.weight";
  }
  return plan;
}

const Family kFamily{
    .name = "eurobert",
    .model_types = {"eurobert"},
    .classes = {"EuroBert"},
    .heads = {{HeadKind::kMasked, "ForMaskedLM"}},
    .loads = "EuroBERT, with the masked-LM head or without",
    .plan = make_plan,
    .files = {.wide_configs = {R"("attention_bias": true, "mlp_bias": true)"}},
    .like = "llama",
};
const FamilyRegistration kRegistration{kFamily};

}  // namespace
}  // namespace masque::model
