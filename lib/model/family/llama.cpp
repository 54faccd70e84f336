// Llama: pre-norm decoder with RMS norms, rotary positions, gated feed-forward, and keys and values
// that several heads share. Touvron 2023, arXiv:2302.13971.
#include "model/decoder_family.hpp"

namespace masque::model {
namespace {

ModelPlan make_plan(const FamilyConfig& config) {
  Design design = decoder_design(config, "llama", {});
  set_angles(design, config, whole_heads());
  const DecoderParts parts = parts_by_config(config);
  return decoder_plan(std::move(design), config, llama_rows(parts), false);
}

const Family kFamily{
    .name = "llama",
    .model_types = {"llama"},
    .classes = {"Llama"},
    .heads = {{HeadKind::kCausal, "ForCausalLM"}},
    .loads = "Llama 1 to 3, with the causal-LM head or without",
    .plan = make_plan,
    .files = {.wide_configs = {R"("attention_bias": true, "mlp_bias": true)"}},
};
const FamilyRegistration kRegistration{kFamily};

}  // namespace
}  // namespace masque::model
