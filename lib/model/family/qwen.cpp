// Qwen2, 2.5 and 3 and their mixtures of experts: Llama with biases of queries, keys and values
// (2), or norms of queries and keys (3), and windows in the later layers if config.json says so.
// Yang 2024, arXiv:2407.10671; 2025, arXiv:2505.09388.
#include "model/decoder_family.hpp"
#include "model/encoder_family.hpp"

namespace masque::model {
namespace {

/// What a model_type of the family is.
struct Kind {
  bool third = false;    ///< Qwen3
  bool mixture = false;  ///< its layers have experts
};

DecoderDefaults defaults_of(const Kind& kind) {
  DecoderDefaults defaults{.vocab_size = 151936, .max_position_embeddings = 32768};
  if (!kind.mixture) {
    defaults.num_key_value_heads = 32;
    defaults.head_dim = kind.third ? 128 : 0;
    defaults.intermediate_size = 22016;
    return defaults;
  }
  defaults.hidden_size = 2048;
  defaults.num_hidden_layers = 24;
  defaults.num_attention_heads = kind.third ? 32 : 16;
  defaults.num_key_value_heads = kind.third ? 4 : 16;
  defaults.intermediate_size = kind.third ? 6144 : 5632;
  return defaults;
}

/// Gives `design` the windows of `config`: of Qwen2 and 3 the layers from max_window_layers on, of
/// Qwen2's mixture every other one before it, or by layer_types; of Qwen3's mixture all or none.
void read_windows(Design& design, const FamilyConfig& config, const Kind& kind) {
  // A size that is not used may be 0.
  std::optional<Index> window;
  if (config.flag("use_sliding_window", false)) window = read_sliding_window(config, 4096);
  std::vector<bool> local = all_layers(design, window.has_value());
  if (!kind.third || !kind.mixture) {
    const Index border = config.count({"max_window_layers"}, 28);
    for (std::size_t l = 0; l < local.size(); ++l) {
      const bool late = static_cast<Index>(l) >= border;
      local[l] = local[l] && (kind.mixture ? !late && l % 2 == 0 : late);
    }
    local = read_local_layers(design, config, local);
  }
  set_windows(design, config, local, window);
}

/// Mixtures of experts in every decoder_sparse_step-th layer but mlp_only_layers.
void read_experts(Design& design, const FamilyConfig& config, const Kind& kind) {
  const Index step = config.size({"decoder_sparse_step"}, 1);
  std::vector<bool> sparse = all_layers(design, false);
  for (std::size_t l = 0; l < sparse.size(); ++l)
    sparse[l] = (static_cast<Index>(l) + 1) % step == 0;
  for (const double layer : config.numbers("mlp_only_layers").value_or(std::vector<double>())) {
    for (std::size_t l = 0; l < sparse.size(); ++l)
      if (static_cast<double>(l) == layer) sparse[l] = false;
  }
  const Index inner = config.size({"moe_intermediate_size"}, kind.third ? 768 : 1408);
  if (kind.third) {
    set_experts(design, config, sparse, {"num_experts", "num_local_experts"}, 128, 8, inner);
  } else {
    set_experts(design, config, sparse, {"num_experts"}, 60, 4, inner);
  }
  if (!design.experts) return;
  design.experts->normalized = config.flag("norm_topk_prob", false);
  if (!kind.third)
    design.experts->shared_intermediate_size =
        config.size({"shared_expert_intermediate_size"}, 5632);
}

/// The rows of `design`, with `parts`.
std::vector<TensorRow> rows_of(const Design& design, const DecoderParts& parts, const Kind& kind) {
  std::vector<TensorRow> layers = {
      {"input_layernorm", {Role::kAttentionNorm}, Parts::kWeight},
      {"post_attention_layernorm", {Role::kFeedForwardNorm}, Parts::kWeight}};
  append(layers, attention_rows(parts));
  if (kind.third)
    append(layers, {{"self_attn.q_norm", {Role::kQueryNorm}, Parts::kWeight},
                    {"self_attn.k_norm", {Role::kKeyNorm}, Parts::kWeight}});
  append(layers, gated_rows(parts));
  append(layers, expert_rows(design, "mlp"));
  if (design.experts && !kind.third) {
    append(layers, {{"mlp.shared_expert.gate_proj", {Role::kSharedExpertGate}, Parts::kWeight},
                    {"mlp.shared_expert.up_proj", {Role::kSharedExpertUp}, Parts::kWeight},
                    {"mlp.shared_expert.down_proj", {Role::kSharedExpertDown}, Parts::kWeight},
                    {"mlp.shared_expert_gate", {Role::kSharedExpertWeight}, Parts::kWeight}});
  }
  return decoder_rows(layers, Parts::kWeight);
}

ModelPlan make_plan(const FamilyConfig& config) {
  const std::string type = config.raw().model_type();
  const Kind kind{type.starts_with("qwen3"), type.ends_with("_moe")};
  Design design = decoder_design(config, "qwen", defaults_of(kind));
  set_angles(design, config, whole_heads());
  DecoderParts parts;
  if (kind.third) {
    parts = parts_by_config(config);
    parts.inner = Parts::kWeight;
    design.query_key_norm = QueryKeyNorm::kHead;
  } else if (!kind.mixture || config.flag("qkv_bias", true)) {
    parts.query_key_value = Parts::kBoth;
  }
  read_windows(design, config, kind);
  if (kind.mixture) read_experts(design, config, kind);
  std::vector<TensorRow> rows = rows_of(design, parts, kind);
  return decoder_plan(std::move(design), config, std::move(rows), false);
}

const Family kFamily{
    .name = "qwen",
    .model_types = {"qwen2", "qwen3", "qwen2_moe", "qwen3_moe"},
    .classes = {"Qwen2", "Qwen3", "Qwen2Moe", "Qwen3Moe"},
    .heads = {{HeadKind::kCausal, "ForCausalLM"}},
    .loads =
        "Qwen2, Qwen2.5 and Qwen3, and their mixtures of experts, with the causal-LM head or "
        "without",
    .plan = make_plan,
    .files = {.wide_configs = {R"("attention_bias": true)", R"("decoder_sparse_step": 2)"}},
    .like = "llama",
};
const FamilyRegistration kRegistration{kFamily};

}  // namespace
}  // namespace masque::model
