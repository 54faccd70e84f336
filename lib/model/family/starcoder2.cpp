// StarCoder2: pre-norm decoder with rotary positions, layer norms, biases, and a window in all
// layers if config.json says so. Lozhkov 2024, arXiv:2402.19173.
#include <utility>

#include "model/decoder_family.hpp"
#include "model/encoder_family.hpp"

namespace masque::model {
namespace {

ModelPlan make_plan(const FamilyConfig& config) {
  Design design = decoder_design(config, "starcoder2",
                                 {.vocab_size = 49152,
                                  .hidden_size = 3072,
                                  .num_hidden_layers = 30,
                                  .num_attention_heads = 24,
                                  .num_key_value_heads = 2,
                                  .intermediate_size = 12288,
                                  .max_position_embeddings = 4096,
                                  .hidden_act = "gelu_pytorch_tanh",
                                  .gated = false,
                                  .norm = kernel::Norm::kLayer,
                                  .norm_epsilon_name = "norm_epsilon",
                                  .norm_epsilon = 1e-5});
  set_angles(design, config, whole_heads());
  const std::optional<Index> window = read_sliding_window(config, std::nullopt);
  set_windows(design, config, all_layers(design, window.has_value()), window);
  const Parts parts = config.flag("use_bias", true) ? Parts::kBoth : Parts::kWeight;
  std::vector<TensorRow> layers = {{"input_layernorm", {Role::kAttentionNorm}},
                                   {"post_attention_layernorm", {Role::kFeedForwardNorm}},
                                   {"mlp.c_fc", {Role::kUp}, parts},
                                   {"mlp.c_proj", {Role::kDown}, parts}};
  append(layers, attention_rows({.query_key_value = parts, .output = parts}));
  return decoder_plan(std::move(design), config, decoder_rows(layers, Parts::kBoth), true);
}

const Family kFamily{
    .name = "starcoder2",
    .model_types = {"starcoder2"},
    .classes = {"Starcoder2"},
    .heads = {{HeadKind::kCausal, "ForCausalLM"}},
    .loads = "StarCoder2, with the causal-LM head or without",
    .plan = make_plan,
    .like = "llama",
};
const FamilyRegistration kRegistration{kFamily};

}  // namespace
}  // namespace masque::model
