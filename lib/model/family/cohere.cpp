// Cohere (Command-R): decoder whose layers have one norm, without bias, in front of attention and
// feed-forward layer; pairs of neighbouring features are rotated. Cohere 2024.
#include <utility>

#include "model/decoder_family.hpp"
#include "model/encoder_family.hpp"

namespace masque::model {
namespace {

ModelPlan make_plan(const FamilyConfig& config) {
  Design design = decoder_design(config, "cohere",
                                 {.vocab_size = 256000,
                                  .hidden_size = 8192,
                                  .num_hidden_layers = 40,
                                  .num_attention_heads = 64,
                                  .intermediate_size = 22528,
                                  .max_position_embeddings = 8192,
                                  .pad_token_id = 0,
                                  .norm = kernel::Norm::kLayer,
                                  .norm_epsilon_name = "layer_norm_eps",
                                  .norm_epsilon = 1e-5});
  set_angles(design, config, whole_heads(500000));
  for (LayerDesign& layer : design.layers) layer.rotary.layout = kernel::RotaryLayout::kAdjacent;
  design.norm_placement = NormPlacement::kParallelShared;
  DecoderParts parts = parts_by_config(config);
  parts.inner = Parts::kWeight;
  std::vector<TensorRow> layers = {{"input_layernorm", {Role::kAttentionNorm}, Parts::kWeight}};
  append(layers, attention_rows(parts));
  append(layers, gated_rows(parts));
  if (config.flag("use_qk_norm", false)) {
    design.query_key_norm = QueryKeyNorm::kEachHead;
    const auto row = [&](const char* name, Role role, Index heads) {
      TensorRow norm{name, {role}, Parts::kWeight};
      norm.shape = {static_cast<std::uint64_t>(heads),
                    static_cast<std::uint64_t>(design.head_size)};
      return norm;
    };
    append(layers, {row("self_attn.q_norm", Role::kQueryNorm, design.num_attention_heads),
                    row("self_attn.k_norm", Role::kKeyNorm, design.num_key_value_heads)});
  }
  const double scale = config.positive("logit_scale", 0.0625);
  ModelPlan plan =
      decoder_plan(std::move(design), config, decoder_rows(layers, Parts::kWeight), true);
  plan.heads.front().design.scale = scale;
  return plan;
}

const Family kFamily{
    .name = "cohere",
    .model_types = {"cohere"},
    .classes = {"Cohere"},
    .heads = {{HeadKind::kCausal, "ForCausalLM"}},
    .loads = "Cohere's Command-R, with the causal-LM head or without",
    .plan = make_plan,
    .files = {.wide_configs = {R"("attention_bias": true, "use_qk_norm": true)"}},
    .like = "llama",
};
const FamilyRegistration kRegistration{kFamily};

}  // namespace
}  // namespace masque::model
