// Mistral, Ministral and Mixtral: Llama whose layers read a window, or with mixtures of experts
// (Mixtral). Jiang 2023, arXiv:2310.06825; 2024, arXiv:2401.04088.
#include <fmt/format.h>

#include "model/decoder_family.hpp"
#include "model/encoder_family.hpp"

namespace masque::model {
namespace {

ModelPlan make_plan(const FamilyConfig& config) {
  const bool mixture = config.raw().model_type() == "mixtral";
  Design design = decoder_design(config, "mistral",
                                 {.num_key_value_heads = 8,
                                  .intermediate_size = 14336,
                                  .max_position_embeddings = 131072,
                                  .norm_epsilon = mixture ? 1e-5 : 1e-6});
  set_angles(design, config, whole_heads(mixture ? 1e6 : 10000));
  const std::optional<Index> window =
      read_sliding_window(config, mixture ? std::nullopt : std::optional<Index>(4096));
  std::vector<bool> local = all_layers(design, window.has_value());
  const std::vector<bool> types = read_local_layers(design, config, local);
  if (design.model_type == "ministral") local = types;
  // The classes of the others read no layer_types.
  if (types != local)
    config.refuse(
        "layer_types",
        fmt::format("{} for all layers, which sliding_window says: in model_type {} all "
                    "layers are alike",
                    window ? kSlidingAttention : kFullAttention, mixture ? "mixtral" : "mistral"));
  set_windows(design, config, local, window);
  if (!mixture) return decoder_plan(std::move(design), config, llama_rows({}), false);
  set_experts(design, config, all_layers(design, true), {"num_local_experts", "num_experts"}, 8, 2,
              design.intermediate_size);
  design.experts->normalized = true;
  std::vector<TensorRow> layers = {
      {"input_layernorm", {Role::kAttentionNorm}, Parts::kWeight},
      {"post_attention_layernorm", {Role::kFeedForwardNorm}, Parts::kWeight}};
  append(layers, attention_rows({}));
  append(layers, expert_rows(design, "block_sparse_moe", {"w1", "w3", "w2"}));
  return decoder_plan(std::move(design), config, decoder_rows(layers, Parts::kWeight), false);
}

const Family kFamily{
    .name = "mistral",
    .model_types = {"mistral", "ministral", "mixtral"},
    .classes = {"Mistral", "Ministral", "Mixtral"},
    .heads = {{HeadKind::kCausal, "ForCausalLM"}},
    .loads = "Mistral, Ministral and Mixtral, with the causal-LM head or without",
    .plan = make_plan,
    .like = "llama",
};
const FamilyRegistration kRegistration{kFamily};

}  // namespace
}  // namespace masque::model
