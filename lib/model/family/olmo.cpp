// OLMo 1 and 2 and OLMoE: Llama with norms without weights and bounds of queries, keys and values
// (1), with norms of queries and keys and of what the parts of a layer give (2), or with norms of
// queries and keys and mixtures of experts (OLMoE). Groeneveld 2024, arXiv:2402.00838; OLMo Team
// 2024, arXiv:2501.00656; Muennighoff 2024, arXiv:2409.02060.
#include <utility>

#include "model/decoder_family.hpp"
#include "model/encoder_family.hpp"

namespace masque::model {
namespace {

std::vector<TensorRow> second_rows(const DecoderParts& parts) {
  std::vector<TensorRow> layers = attention_rows(parts);
  append(layers, {{"self_attn.q_norm", {Role::kQueryNorm}, Parts::kWeight},
                  {"self_attn.k_norm", {Role::kKeyNorm}, Parts::kWeight},
                  {"post_attention_layernorm", {Role::kAttentionOutputNorm}, Parts::kWeight},
                  {"post_feedforward_layernorm", {Role::kFeedForwardOutputNorm}, Parts::kWeight}});
  append(layers, gated_rows(parts));
  return decoder_rows(layers, Parts::kWeight);
}

ModelPlan make_mixture_plan(const FamilyConfig& config) {
  Design design = decoder_design(config, "olmo",
                                 {.vocab_size = 50304,
                                  .hidden_size = 2048,
                                  .num_hidden_layers = 16,
                                  .num_attention_heads = 16,
                                  .reads_head_dim = false,
                                  .intermediate_size = 2048,
                                  .max_position_embeddings = 4096,
                                  .pad_token_id = 1,
                                  .norm_epsilon = 1e-5});
  set_angles(design, config, whole_heads());
  design.query_key_norm = QueryKeyNorm::kWidth;
  if (config.has("clip_qkv")) {
    design.clip_qkv = config.positive("clip_qkv", 1);
    design.clip_after_norms = true;
  }
  set_experts(design, config, all_layers(design, true), {"num_experts", "num_local_experts"}, 64, 8,
              design.intermediate_size);
  design.experts->normalized = config.flag("norm_topk_prob", false);
  DecoderParts parts = parts_by_config(config);
  std::vector<TensorRow> layers = attention_rows(parts);
  append(layers, {{"self_attn.q_norm", {Role::kQueryNorm}, Parts::kWeight},
                  {"self_attn.k_norm", {Role::kKeyNorm}, Parts::kWeight},
                  {"input_layernorm", {Role::kAttentionNorm}, Parts::kWeight},
                  {"post_attention_layernorm", {Role::kFeedForwardNorm}, Parts::kWeight}});
  append(layers, expert_rows(design, "mlp"));
  return decoder_plan(std::move(design), config, decoder_rows(layers, Parts::kWeight), false);
}

ModelPlan make_plan(const FamilyConfig& config) {
  if (config.raw().model_type() == "olmoe") return make_mixture_plan(config);
  const bool second = config.raw().model_type() == "olmo2";
  DecoderDefaults defaults{.vocab_size = 50304, .pad_token_id = 1, .norm_epsilon = 1e-5};
  if (!second) {
    defaults.norm = kernel::Norm::kLayer;
    defaults.norm_epsilon_name = "";
  }
  Design design = decoder_design(config, "olmo", defaults);
  set_angles(design, config, whole_heads());
  DecoderParts parts = parts_by_config(config);
  parts.inner = Parts::kWeight;
  std::vector<TensorRow> rows;
  if (second) {
    design.norm_placement = NormPlacement::kOutput;
    design.query_key_norm = QueryKeyNorm::kWidth;
    rows = second_rows(parts);
  } else {
    design.norm_weights = false;
    if (config.has("clip_qkv")) design.clip_qkv = config.positive("clip_qkv", 1);
    rows = llama_rows(parts);
    std::erase_if(rows, [](const TensorRow& row) { return is_norm(row.roles.front()); });
  }
  return decoder_plan(std::move(design), config, std::move(rows), false);
}

const Family kFamily{
    .name = "olmo",
    .model_types = {"olmo", "olmo2", "olmoe"},
    .classes = {"Olmo", "Olmo2", "Olmoe"},
    .heads = {{HeadKind::kCausal, "ForCausalLM"}},
    .loads = "OLMo 1 and 2 and OLMoE, with the causal-LM head or without",
    .plan = make_plan,
    .files = {.wide_configs = {R"("attention_bias": true)"}},
    .like = "llama",
};
const FamilyRegistration kRegistration{kFamily};

}  // namespace
}  // namespace masque::model
