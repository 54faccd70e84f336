// StableLM 2 and 3B: Llama with layer norms and rotary positions on a part of each head; attention
// and feed-forward layer after one another, or side by side after one norm. Bellagente 2024,
// arXiv:2402.17834.
#include <utility>

#include <fmt/format.h>

#include "model/decoder_family.hpp"
#include "model/encoder_family.hpp"

namespace masque::model {
namespace {

/// Norms of queries or keys: a tensor for each head.
void add_norms(std::string_view name, Role role, Index heads, std::vector<TensorRow>& to) {
  for (Index head = 0; head < heads; ++head)
    to.push_back({fmt::format("self_attn.{}.norms.{}", name, head),
                  {role},
                  Parts::kWeight,
                  TensorLayout::kNextColumns});
}

ModelPlan make_plan(const FamilyConfig& config) {
  Design design = decoder_design(config, "stablelm",
                                 {.vocab_size = 50304,
                                  .hidden_size = 2560,
                                  .num_key_value_heads = 32,
                                  .reads_head_dim = false,
                                  .intermediate_size = 6912,
                                  .max_position_embeddings = 4096,
                                  .norm = kernel::Norm::kLayer,
                                  .norm_epsilon_name = "layer_norm_eps",
                                  .norm_epsilon = 1e-5});
  set_angles(design, config, {.share = 0.25, .share_name = "partial_rotary_factor"});
  DecoderParts parts;
  if (config.flag("use_qkv_bias", false)) parts.query_key_value = Parts::kBoth;
  std::vector<TensorRow> layers = {{"input_layernorm", {Role::kAttentionNorm}}};
  append(layers, attention_rows(parts));
  append(layers, gated_rows(parts));
  if (config.flag("use_parallel_residual", false)) {
    design.norm_placement = NormPlacement::kParallelShared;
  } else {
    layers.push_back({"post_attention_layernorm", {Role::kFeedForwardNorm}});
  }
  if (config.flag("qk_layernorm", false)) {
    design.query_key_norm = QueryKeyNorm::kEachHead;
    add_norms("q_layernorm", Role::kQueryNorm, design.num_attention_heads, layers);
    add_norms("k_layernorm", Role::kKeyNorm, design.num_key_value_heads, layers);
  }
  return decoder_plan(std::move(design), config, decoder_rows(layers, Parts::kBoth), false);
}

const Family kFamily{
    .name = "stablelm",
    .model_types = {"stablelm"},
    .classes = {"StableLm"},
    .heads = {{HeadKind::kCausal, "ForCausalLM"}},
    .loads = "StableLM (model_type stablelm), with the causal-LM head or without",
    .plan = make_plan,
    .files = {.wide_configs = {R"("use_qkv_bias": true, "qk_layernorm": true)"}},
    .like = "llama",
};
const FamilyRegistration kRegistration{kFamily};

}  // namespace
}  // namespace masque::model
