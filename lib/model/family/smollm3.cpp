// SmolLM3: Llama whose every fourth layer has no positions. Bakouch 2025; NoPE in some layers: Yang
// 2025, arXiv:2501.18795.
#include <utility>

#include "model/decoder_family.hpp"

namespace masque::model {
namespace {

/// Whether each layer rotates queries and keys.
std::vector<bool> read_rotated(const Design& design, const FamilyConfig& config) {
  const Index every = config.size({"no_rope_layer_interval"}, 4);
  const auto given = config.numbers("no_rope_layers");
  std::vector<bool> rotated = all_layers(design, true);
  if (given && given->size() < rotated.size())
    config.refuse("no_rope_layers", "an item for each layer, 1 with rotation, 0 without");
  for (std::size_t l = 0; l < rotated.size(); ++l)
    rotated[l] = given ? (*given)[l] != 0 : (static_cast<Index>(l) + 1) % every != 0;
  return rotated;
}

ModelPlan make_plan(const FamilyConfig& config) {
  Design design = decoder_design(config, "smollm3",
                                 {.vocab_size = 128256,
                                  .hidden_size = 2048,
                                  .num_hidden_layers = 36,
                                  .num_attention_heads = 16,
                                  .num_key_value_heads = 4,
                                  .max_position_embeddings = 32768,
                                  .pad_token_id = 128004});
  set_angles(design, config, whole_heads(2000000));
  const std::optional<Index> window = read_sliding_window(config, std::nullopt);
  const bool windows = config.flag("use_sliding_window", false) && window;
  const std::vector<bool> rotated = read_rotated(design, config);
  std::vector<bool> local = all_layers(design, false);
  for (std::size_t l = 0; l < rotated.size(); ++l) {
    if (rotated[l]) continue;
    design.layers[l].rotary.frequencies.clear();
    local[l] = windows;
  }
  set_windows(design, config, read_local_layers(design, config, local), window);
  return decoder_plan(std::move(design), config, llama_rows(parts_by_config(config)), true);
}

const Family kFamily{
    .name = "smollm3",
    .model_types = {"smollm3"},
    .classes = {"SmolLM3"},
    .heads = {{HeadKind::kCausal, "ForCausalLM"}},
    .loads = "SmolLM3, with the causal-LM head or without",
    .plan = make_plan,
    .files = {.wide_configs = {R"("attention_bias": true, "mlp_bias": true)"}},
    .like = "llama",
};
const FamilyRegistration kRegistration{kFamily};

}  // namespace
}  // namespace masque::model
