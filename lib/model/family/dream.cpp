// Dream: Qwen2.5 in an encoder that predicts hidden tokens, each from the position before it, as
// the model of next tokens did that it was made from. Ye 2025, arXiv:2508.15487. transformers does
// not have it: the authors' code is in their folders.
#include "model/decoder_family.hpp"
#include "model/encoder_family.hpp"

namespace masque::model {
namespace {

ModelPlan make_plan(const FamilyConfig& config) {
  Design design = decoder_design(config, "dream",
                                 {.vocab_size = 151936,
                                  .num_key_value_heads = 32,
                                  .reads_head_dim = false,
                                  .intermediate_size = 22016,
                                  .max_position_embeddings = 32768,
                                  .pad_token_id = 151643});
  design.mask = DefaultMask::kFull;
  read_mask_token(design, config);
  set_angles(design, config, whole_heads());
  ModelPlan plan =
      decoder_plan(std::move(design), config, llama_rows({.query_key_value = Parts::kBoth}), false);
  plan.heads.front().design.shifted = true;
  return plan;
}

const Family kFamily{
    .name = "dream",
    .model_types = {"Dream"},
    .classes = {"Dream"},
    .heads = {{HeadKind::kMasked, "Model"}},
    .loads = "Dream 7B and its relatives, with the head or without",
    .plan = make_plan,
    .base_classes = "DreamBaseModel",
    .like = "llama",
};
const FamilyRegistration kRegistration{kFamily};

}  // namespace
}  // namespace masque::model
