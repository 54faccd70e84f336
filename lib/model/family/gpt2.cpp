// GPT-2: pre-norm decoder with learned positions; matrices are stored (in, out), query, key and
// value in one. Radford 2019.
#include <cmath>

#include "model/decoder_family.hpp"
#include "model/encoder_family.hpp"

namespace masque::model {
namespace {

Design read_design(const FamilyConfig& config) {
  config.expect_flag("add_cross_attention", false);
  Design design;
  design.family = "gpt2";
  design.model_type = config.raw().model_type();
  design.vocab_size = config.size({"vocab_size"}, 50257);
  design.hidden_size = config.size({"n_embd", "hidden_size"}, 768);
  design.embedding_size = design.hidden_size;
  design.num_hidden_layers = config.layers({"n_layer", "num_hidden_layers"}, 12);
  design.num_attention_heads = config.size({"n_head", "num_attention_heads"}, 12);
  design.intermediate_size = config.size({"n_inner"}, 4 * design.hidden_size);
  design.max_position_embeddings =
      config.size({"n_positions", "max_position_embeddings"}, config.size({"n_ctx"}, 1024));
  design.pad_token_id = config.optional_count("pad_token_id");
  read_mask_token(design, config);
  design.norm_placement = NormPlacement::kPre;
  design.norm.epsilon = config.positive("layer_norm_epsilon", 1e-5);
  design.final_norm = true;
  design.activation = config.activation("activation_function", "gelu_new");
  design.mask = DefaultMask::kCausal;
  split_heads(design, config, "n_embd", "n_head");
  if (!config.flag("scale_attn_weights", true)) design.attention_scale = 1;
  fill_layers(design);
  if (config.flag("scale_attn_by_inverse_layer_idx", false)) {
    for (std::size_t l = 0; l < design.layers.size(); ++l)
      design.layers[l].attention_scale = 1 / static_cast<double>(l + 1);
  }
  return design;
}

ModelPlan make_plan(const FamilyConfig& config) {
  ModelPlan plan;
  plan.prefix = "transformer.";
  plan.design = read_design(config);
  plan.rows = {
      {"~wte", {Role::kWordTable}, Parts::kWeight},
      {"~wpe", {Role::kPositionTable}, Parts::kWeight},
      {"~h.{l}.ln_1", {Role::kAttentionNorm}},
      {"~h.{l}.attn.c_attn",
       {Role::kQuery, Role::kKey, Role::kValue},
       Parts::kBoth,
       TensorLayout::kInOut},
      {"~h.{l}.attn.c_proj", {Role::kOutput}, Parts::kBoth, TensorLayout::kInOut},
      {"~h.{l}.ln_2", {Role::kFeedForwardNorm}},
      {"~h.{l}.mlp.c_fc", {Role::kUp}, Parts::kBoth, TensorLayout::kInOut},
      {"~h.{l}.mlp.c_proj", {Role::kDown}, Parts::kBoth, TensorLayout::kInOut},
      {"~ln_f", {Role::kFinalNorm}},
  };
  add_lm_head(plan, config, true);
  plan.buffers = {{".attn.bias", BufferTensor::Content::kCausal}, {".attn.masked_bias"}};
  return plan;
}

/// GPT2PreTrainedModel._init_weights: both projections onto the residual are scaled by its depth,
/// and padding has no row of its own.
std::vector<StartRule> gpt2_starts(const FamilyConfig& config, const Design& design) {
  const auto layers = static_cast<double>(design.num_hidden_layers);
  const StartValue residual = StartValue::normal(start_range(config) / std::sqrt(2 * layers));
  return {{Role::kOutput, residual}, {Role::kDown, residual}};
}

const Family kFamily{
    .name = "gpt2",
    .model_types = {"gpt2"},
    .classes = {"GPT2"},
    .heads = {{HeadKind::kCausal, "LMHeadModel"}},
    .loads = "GPT-2, with its causal-LM head; OpenAI's names without prefix too",
    .plan = make_plan,
    .starts = gpt2_starts,
    .files = {.lm_classes = {"DoubleHeadsModel"}, .position_field = "n_positions"},
};
const FamilyRegistration kRegistration{kFamily};

}  // namespace
}  // namespace masque::model
