// gpt-oss: a mixture of experts with a sink for the attention of each head, and windows in every
// other layer. OpenAI 2025, arXiv:2508.10925.
#include "model/decoder_family.hpp"
#include "model/encoder_family.hpp"

namespace masque::model {
namespace {

/// All experts of a layer in one tensor.
TensorRow stacked_row(const Design& design, std::string name, std::vector<Role> roles,
                      Parts parts) {
  TensorRow row{std::move(name), std::move(roles), parts, TensorLayout::kParts};
  row.parts_stacked = design.experts->count;
  return row;
}

std::vector<TensorRow> layer_rows(const Design& design, const DecoderParts& parts) {
  std::vector<TensorRow> layers = {
      {"input_layernorm", {Role::kAttentionNorm}, Parts::kWeight},
      {"post_attention_layernorm", {Role::kFeedForwardNorm}, Parts::kWeight},
      {"self_attn.sinks", {Role::kSinks}, Parts::kTensor},
      {"mlp.router", {Role::kRouter}}};
  append(layers, attention_rows(parts));
  const std::vector<Role> inner = {Role::kExpertGate, Role::kExpertUp};
  append(layers, {stacked_row(design, "mlp.experts.gate_up_proj", inner, Parts::kTensor),
                  stacked_row(design, "mlp.experts.gate_up_proj_bias", inner, Parts::kBiasTensor),
                  stacked_row(design, "mlp.experts.down_proj", {Role::kExpertDown}, Parts::kTensor),
                  stacked_row(design, "mlp.experts.down_proj_bias", {Role::kExpertDown},
                              Parts::kBiasTensor)});
  return layers;
}

ModelPlan make_plan(const FamilyConfig& config) {
  Design design = decoder_design(config, "gpt_oss",
                                 {.vocab_size = 201088,
                                  .hidden_size = 2880,
                                  .num_hidden_layers = 36,
                                  .num_attention_heads = 64,
                                  .num_key_value_heads = 8,
                                  .head_dim = 64,
                                  .intermediate_size = 2880,
                                  .max_position_embeddings = 131072,
                                  .norm_epsilon = 1e-5});
  RotaryDefaults angles = whole_heads(150000);
  angles.parameters =
      R"({"rope_type": "yarn", "factor": 32.0, "truncate": false, "original_max_position_embeddings": 4096})";
  set_angles(design, config, angles);
  std::vector<bool> local = all_layers(design, true);
  for (std::size_t l = 1; l < local.size(); l += 2) local[l] = false;
  set_windows(design, config, read_local_layers(design, config, local),
              read_sliding_window(config, 128));
  design.sinks = true;
  set_experts(design, config, all_layers(design, true), {"num_local_experts", "num_experts"}, 128,
              4, design.intermediate_size);
  design.experts->normalized = true;
  design.experts->limit = config.positive("swiglu_limit", 7);
  // x · σ(α x) of the one α.
  config.expect_number("swiglu_alpha", 1.702);
  design.activation = kernel::Activation::kQuickGelu;
  DecoderParts parts;
  if (config.flag("attention_bias", true)) parts.query_key_value = parts.output = Parts::kBoth;
  const std::vector<TensorRow> layers = layer_rows(design, parts);
  return decoder_plan(std::move(design), config, decoder_rows(layers, Parts::kWeight), false);
}

const Family kFamily{
    .name = "gpt_oss",
    .model_types = {"gpt_oss"},
    .classes = {"GptOss"},
    .heads = {{HeadKind::kCausal, "ForCausalLM"}},
    .loads = "gpt-oss with weights that are not quantised, with the causal-LM head or without",
    .plan = make_plan,
    .files = {.wide_configs = {R"("attention_bias": false)"}},
    .like = "llama",
};
const FamilyRegistration kRegistration{kFamily};

}  // namespace
}  // namespace masque::model
