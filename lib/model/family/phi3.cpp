// Phi-3, 3.5 and 4: Llama with projections stored as one, a window in all layers if config.json
// says so, and angles that depend on the length of a text. Abdin 2024, arXiv:2404.14219.
#include <utility>

#include "model/decoder_family.hpp"

namespace masque::model {
namespace {

ModelPlan make_plan(const FamilyConfig& config) {
  Design design = decoder_design(config, "phi3",
                                 {.vocab_size = 32064,
                                  .hidden_size = 3072,
                                  .intermediate_size = 8192,
                                  .max_position_embeddings = 4096,
                                  .pad_token_id = 32000,
                                  .norm_epsilon = 1e-5});
  set_angles(
      design, config,
      {.share_name = "partial_rotary_factor", .original_length = 4096, .always_longrope = true});
  const std::optional<Index> window = read_sliding_window(config, std::nullopt);
  set_windows(design, config, all_layers(design, window.has_value()), window);
  const std::vector<TensorRow> layers = {
      {"input_layernorm", {Role::kAttentionNorm}, Parts::kWeight},
      {"self_attn.qkv_proj", {Role::kQuery, Role::kKey, Role::kValue}, Parts::kWeight},
      {"self_attn.o_proj", {Role::kOutput}, Parts::kWeight},
      {"post_attention_layernorm", {Role::kFeedForwardNorm}, Parts::kWeight},
      {"mlp.gate_up_proj", {Role::kGate, Role::kUp}, Parts::kWeight},
      {"mlp.down_proj", {Role::kDown}, Parts::kWeight}};
  return decoder_plan(std::move(design), config, decoder_rows(layers, Parts::kWeight), false);
}

const Family kFamily{
    .name = "phi3",
    .model_types = {"phi3"},
    .classes = {"Phi3"},
    .heads = {{HeadKind::kCausal, "ForCausalLM"}},
    .loads = "Phi-3, Phi-3.5 and Phi-4 (text), with the causal-LM head or without",
    .plan = make_plan,
    .like = "llama",
};
const FamilyRegistration kRegistration{kFamily};

}  // namespace
}  // namespace masque::model
