// Phi-1, 1.5 and 2: decoder with rotary positions on a part of each head, attention and
// feed-forward layer side by side after one norm. Gunasekar 2023, arXiv:2306.11644.
#include <utility>

#include "model/decoder_family.hpp"
#include "model/encoder_family.hpp"

namespace masque::model {
namespace {

ModelPlan make_plan(const FamilyConfig& config) {
  Design design = decoder_design(config, "phi",
                                 {.vocab_size = 51200,
                                  .hidden_size = 2048,
                                  .num_hidden_layers = 24,
                                  .intermediate_size = 8192,
                                  .hidden_act = "gelu_new",
                                  .gated = false,
                                  .norm = kernel::Norm::kLayer,
                                  .norm_epsilon_name = "layer_norm_eps",
                                  .norm_epsilon = 1e-5});
  set_angles(design, config, {.share = 0.5, .share_name = "partial_rotary_factor"});
  design.norm_placement = NormPlacement::kParallelShared;
  std::vector<TensorRow> layers = {{"input_layernorm", {Role::kAttentionNorm}},
                                   {"self_attn.q_proj", {Role::kQuery}},
                                   {"self_attn.k_proj", {Role::kKey}},
                                   {"self_attn.v_proj", {Role::kValue}},
                                   {"self_attn.dense", {Role::kOutput}},
                                   {"mlp.fc1", {Role::kUp}},
                                   {"mlp.fc2", {Role::kDown}}};
  if (config.flag("qk_layernorm", false)) {
    if (design.hidden_size != design.num_attention_heads * design.head_size)
      config.refuse("qk_layernorm", "false with a head_dim that is not hidden_size / heads");
    design.query_key_norm = QueryKeyNorm::kHead;
    append(layers, {{"self_attn.q_layernorm", {Role::kQueryNorm}},
                    {"self_attn.k_layernorm", {Role::kKeyNorm}}});
  }
  ModelPlan plan = decoder_plan(std::move(design), config,
                                decoder_rows(layers, Parts::kBoth, "final_layernorm"), false);
  HeadPlan& head = plan.heads.front();
  head.rows = {{"lm_head.bias", {Role::kDecoder}, Parts::kBiasTensor}};
  head.evidence = "lm_head.bias|lm_head.weight";
  return plan;
}

const Family kFamily{
    .name = "phi",
    .model_types = {"phi"},
    .classes = {"Phi"},
    .heads = {{HeadKind::kCausal, "ForCausalLM"}},
    .loads = "Phi-1, Phi-1.5 and Phi-2, with the causal-LM head or without",
    .plan = make_plan,
    .files = {.wide_configs = {R"("qk_layernorm": true)"}},
    .like = "llama",
};
const FamilyRegistration kRegistration{kFamily};

}  // namespace
}  // namespace masque::model
