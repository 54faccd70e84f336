// Mistral and Ministral: Llama whose layers read a window. Jiang 2023, arXiv:2310.06825.
#include "model/decoder_family.hpp"

namespace masque::model {
namespace {

ModelPlan make_plan(const FamilyConfig& config) {
  Design design = decoder_design(
      config, "mistral",
      {.num_key_value_heads = 8, .intermediate_size = 14336, .max_position_embeddings = 131072});
  set_angles(design, config, whole_heads());
  const std::optional<Index> window = read_sliding_window(config, 4096);
  std::vector<bool> local = all_layers(design, window.has_value());
  // Mistral's class reads no layer_types.
  if (design.model_type == "ministral") local = read_local_layers(design, config, local);
  set_windows(design, config, local, window);
  return decoder_plan(std::move(design), config, llama_rows({}), false);
}

const Family kFamily{
    .name = "mistral",
    .model_types = {"mistral", "ministral"},
    .classes = {"Mistral", "Ministral"},
    .heads = {{HeadKind::kCausal, "ForCausalLM"}},
    .loads = "Mistral and Ministral, with the causal-LM head or without",
    .plan = make_plan,
    .like = "llama",
};
const FamilyRegistration kRegistration{kFamily};

}  // namespace
}  // namespace masque::model
