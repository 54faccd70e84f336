// Qwen2, 2.5 and 3: Llama with biases of queries, keys and values (2), or norms of queries and keys
// (3), and windows in the later layers if config.json says so. Yang 2024, arXiv:2407.10671; 2025,
// arXiv:2505.09388.
#include "model/decoder_family.hpp"
#include "model/encoder_family.hpp"

namespace masque::model {
namespace {

ModelPlan make_plan(const FamilyConfig& config) {
  const bool third = config.raw().model_type() == "qwen3";
  Design design = decoder_design(config, "qwen",
                                 {.vocab_size = 151936,
                                  .num_key_value_heads = 32,
                                  .head_dim = third ? 128 : 0,
                                  .intermediate_size = 22016,
                                  .max_position_embeddings = 32768});
  set_angles(design, config, whole_heads());
  std::optional<Index> window = read_sliding_window(config, 4096);
  if (!config.flag("use_sliding_window", false)) window.reset();
  const Index first = config.count({"max_window_layers"}, 28);
  std::vector<bool> local = all_layers(design, false);
  for (std::size_t l = 0; l < local.size(); ++l)
    local[l] = window && static_cast<Index>(l) >= first;
  set_windows(design, config, read_local_layers(design, config, local), window);
  DecoderParts parts = parts_by_config(config);
  parts.inner = Parts::kWeight;
  if (!third) parts = {.query_key_value = Parts::kBoth};
  std::vector<TensorRow> rows = llama_rows(parts);
  if (third) {
    design.query_key_norm = QueryKeyNorm::kHead;
    append(rows, {{"~layers.{l}.self_attn.q_norm", {Role::kQueryNorm}, Parts::kWeight},
                  {"~layers.{l}.self_attn.k_norm", {Role::kKeyNorm}, Parts::kWeight}});
  }
  return decoder_plan(std::move(design), config, std::move(rows), false);
}

const Family kFamily{
    .name = "qwen",
    .model_types = {"qwen2", "qwen3"},
    .classes = {"Qwen2", "Qwen3"},
    .heads = {{HeadKind::kCausal, "ForCausalLM"}},
    .loads = "Qwen2, Qwen2.5 and Qwen3, with the causal-LM head or without",
    .plan = make_plan,
    .files = {.wide_configs = {R"("attention_bias": true)"}},
    .like = "llama",
};
const FamilyRegistration kRegistration{kFamily};

}  // namespace
}  // namespace masque::model
