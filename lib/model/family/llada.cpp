// LLaDA: Llama's layers in an encoder that predicts hidden tokens, with the names and options of
// OLMo's first code. Nie 2025, arXiv:2502.09992. transformers does not have it: the authors' code
// is in their folders.
#include <cmath>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "model/decoder_family.hpp"
#include "model/encoder_family.hpp"

namespace masque::model {
namespace {

/// n_kv_heads and multi_query_attention, which say the same.
Index read_key_heads(const FamilyConfig& config, Index heads) {
  const bool stated = config.has("multi_query_attention");
  const bool one = config.flag("multi_query_attention", false);
  const Index found = config.size({"n_kv_heads"}, one ? 1 : heads);
  if (stated && found != (one ? 1 : heads))
    config.refuse("n_kv_heads", fmt::format("{} with multi_query_attention", one ? 1 : heads));
  if (heads % found != 0) config.refuse("n_kv_heads", "a divisor of n_heads");
  return found;
}

/// The kind of all norms, of which those of queries and keys may have weights or not on their own.
void read_norms(const FamilyConfig& config, Design& design) {
  const std::string kind = config.text("layer_norm_type", "default");
  const bool plain = kind == "default" || kind == "low_precision";
  if (!plain && kind != "rms" && kind != "gemma_rms")
    config.refuse("layer_norm_type", "\"default\", \"low_precision\", \"rms\" or \"gemma_rms\"");
  design.norm.kind = plain ? kernel::Norm::kLayer : kernel::Norm::kRms;
  const double epsilon = config.positive("rms_norm_eps", 1e-5);
  design.norm.epsilon = plain ? 1e-5 : epsilon;
  design.norm_weights = config.flag("layer_norm_with_affine", true);
  if (kind == "gemma_rms" && !design.norm_weights)
    config.refuse("layer_norm_with_affine", "true with gemma_rms");
  design.norm.weight_offset = kind == "gemma_rms" ? 1 : 0;
  const bool own_affine = config.flag("attention_layer_norm_with_affine", true);
  if (!config.flag("attention_layer_norm", false)) return;
  design.query_key_norm = QueryKeyNorm::kWidth;
  if (own_affine != design.norm_weights)
    config.refuse("attention_layer_norm_with_affine", "the value of layer_norm_with_affine");
}

void refuse_other_blocks(const FamilyConfig& config) {
  const auto need = [&](std::string_view name, bool found, std::string_view expected) {
    if (!found) config.refuse(name, expected);
  };
  need("block_type", config.text("block_type", "sequential") == "llama", "\"llama\"");
  need("rope", config.flag("rope", false), "true");
  config.expect_flag("alibi", false);
  config.expect_number("block_group_size", 1);
  // Of a gate of its own the block has no use: its sizes do not fit.
  need("activation_type", config.text("activation_type", "swiglu") != "swiglu",
       "\"silu\", \"gelu\" or \"relu\"");
}

kernel::Activation read_activation(const FamilyConfig& config) {
  const std::string name = config.text("activation_type", "");
  if (name != "silu" && name != "gelu" && name != "relu")
    config.refuse("activation_type", "\"silu\", \"gelu\" or \"relu\"");
  return config.activation("activation_type", "");
}

Design read_design(const FamilyConfig& config) {
  refuse_other_blocks(config);
  Design design;
  design.family = "llada";
  design.model_type = config.raw().model_type();
  const Index tokens = config.size({"vocab_size"}, 50257);
  const Index rows = config.is_null("embedding_size") ? tokens : 50304;
  // Rows beyond the tokens are never read, but the softmax of the authors' code has them.
  design.vocab_size = config.size({"embedding_size"}, rows);
  if (design.vocab_size < tokens) config.refuse("embedding_size", "at least vocab_size");
  design.hidden_size = config.size({"d_model"}, 768);
  design.embedding_size = design.hidden_size;
  design.num_hidden_layers = config.layers({"n_layers"}, 12);
  design.num_attention_heads = config.size({"n_heads"}, 12);
  split_heads(design, config, "d_model", "n_heads");
  design.num_key_value_heads = read_key_heads(config, design.num_attention_heads);
  const Index ratio = config.size({"mlp_ratio"}, 4);
  design.intermediate_size = config.size({"mlp_hidden_size"}, ratio * design.hidden_size);
  design.max_position_embeddings = config.size({"max_sequence_length"}, 1024);
  design.pad_token_id = config.optional_count("pad_token_id");
  read_mask_token(design, config);
  design.norm_placement = NormPlacement::kPre;
  read_norms(config, design);
  design.final_norm = true;
  design.activation = read_activation(config);
  design.gated = true;
  design.position = PositionType::kRotary;
  if (config.flag("input_emb_norm", false))
    design.embedding_scale = std::sqrt(static_cast<double>(design.hidden_size));
  LayerDesign layer;
  layer.rotary = float_rotary(config.positive("rope_theta", 10000), design.head_size);
  fill_layers(design, layer);
  return design;
}

/// Which tensors have biases: norms have those of dense layers unless config.json says otherwise.
DecoderParts read_parts(const FamilyConfig& config) {
  const bool all = config.flag("include_bias", false);
  const bool three = config.flag("include_qkv_bias", false);
  DecoderParts parts;
  if (all) parts.output = parts.inner = Parts::kBoth;
  if (all || three) parts.query_key_value = Parts::kBoth;
  if (config.flag("bias_for_layer_norm", all)) parts.norm = Parts::kBoth;
  return parts;
}

std::vector<TensorRow> rows_of(const Design& design, const DecoderParts& parts) {
  std::vector<TensorRow> layers = {{"attn_norm", {Role::kAttentionNorm}, parts.norm},
                                   {"q_proj", {Role::kQuery}, parts.query_key_value},
                                   {"k_proj", {Role::kKey}, parts.query_key_value},
                                   {"v_proj", {Role::kValue}, parts.query_key_value},
                                   {"attn_out", {Role::kOutput}, parts.output},
                                   {"ff_norm", {Role::kFeedForwardNorm}, parts.norm},
                                   {"ff_proj", {Role::kGate}, parts.inner},
                                   {"up_proj", {Role::kUp}, parts.inner},
                                   {"ff_out", {Role::kDown}, parts.inner}};
  if (design.query_key_norm != QueryKeyNorm::kNone)
    append(layers,
           {{"q_norm", {Role::kQueryNorm}, parts.norm}, {"k_norm", {Role::kKeyNorm}, parts.norm}});
  std::vector<TensorRow> rows = {{"~transformer.wte", {Role::kWordTable}, Parts::kWeight}};
  for (TensorRow row : layers) {
    row.name = "~transformer.blocks.{l}." + row.name;
    rows.push_back(std::move(row));
  }
  rows.push_back({"~transformer.ln_f", {Role::kFinalNorm}, parts.norm});
  if (!design.norm_weights)
    std::erase_if(rows, [](const TensorRow& row) { return is_norm(row.roles.front()); });
  return rows;
}

HeadPlan head_of(const Design& design, const FamilyConfig& config) {
  HeadDesign head;
  head.kind = HeadKind::kMasked;
  head.tied = config.flag("weight_tying", true);
  if (config.flag("scale_logits", false))
    head.scale = 1 / std::sqrt(static_cast<double>(design.hidden_size));
  HeadPlan plan = bare_head(head, config, "masked-LM head", "model.transformer.ff_out.weight");
  plan.always_tied = true;
  if (!config.flag("include_bias", false)) return plan;
  if (head.tied) config.refuse("include_bias", "false with weight_tying");
  // The authors' code scales the bias, too.
  if (head.scale != 1) config.refuse("scale_logits", "false with include_bias");
  plan.rows = {{"model.transformer.ff_out.bias", {Role::kDecoder}, Parts::kBiasTensor}};
  return plan;
}

ModelPlan make_plan(const FamilyConfig& config) {
  ModelPlan plan;
  plan.prefix = "model.";
  plan.design = read_design(config);
  plan.rows = rows_of(plan.design, read_parts(config));
  plan.heads = {head_of(plan.design, config)};
  return plan;
}

/// How the matrices of a class start, from the width of what they read: those after attention and
/// feed-forward layer may depend on the depth.
class Starts {
 public:
  Starts(const FamilyConfig& config, const Design& design)
      : design_(design), kind_(config.text("init_fn", "normal")) {
    if (kind_ != "normal" && kind_ != "mitchell" && kind_ != "fan_in" && kind_ != "kaiming_normal")
      config.refuse("init_fn", "\"normal\", \"mitchell\", \"fan_in\" or \"kaiming_normal\"");
    deviation_ = config.number("init_std", 0.02);
    if (!(deviation_ >= 0)) config.refuse("init_std", "a number from 0");
    if (config.has("init_cutoff_factor")) cutoff_ = config.positive("init_cutoff_factor", 1);
    if (config.flag("scale_logits", false))
      words_ = 0.5 * std::sqrt(static_cast<double>(design.hidden_size));
  }

  std::vector<StartRule> rules() const {
    const Index width = design_.hidden_size;
    std::vector<StartRule> all = {{Role::kWordTable, of(width, words_)},
                                  {Role::kDecoder, of(width, 1)}};
    for (const Role role : {Role::kQuery, Role::kKey, Role::kValue, Role::kGate, Role::kUp})
      all.push_back({role, of(width, 1)});
    for (Index l = 0; l < design_.num_hidden_layers; ++l) {
      const bool deeper = kind_ == "mitchell";
      const double scale = deeper ? 1 / std::sqrt(2.0 * static_cast<double>(l + 1)) : 1;
      const double down = kind_ == "normal"
                              ? 1 / std::sqrt(2.0 * static_cast<double>(design_.num_hidden_layers))
                              : scale;
      all.push_back({Role::kOutput, of(width, scale), l});
      all.push_back({Role::kDown, of(design_.intermediate_size, down), l});
    }
    if (design_.norm.weight_offset == 0) return all;
    for (const Role role : {Role::kAttentionNorm, Role::kFeedForwardNorm, Role::kFinalNorm,
                            Role::kQueryNorm, Role::kKeyNorm})
      all.push_back({role, StartValue::constant(1)});
    return all;
  }

 private:
  StartValue of(Index read, double factor) const {
    const double width = std::sqrt(static_cast<double>(read));
    StartValue start = StartValue::normal(factor / width);
    if (kind_ == "normal") start.deviation = factor * deviation_;
    if (kind_ == "kaiming_normal") start.deviation = std::sqrt(2.0) / width;
    const double cutoff = kind_ == "mitchell" ? 3 : kind_ == "normal" ? cutoff_ : 0;
    if (cutoff == 0) return start;
    start.kind = StartValue::Kind::kTruncatedNormal;
    start.cutoff = cutoff;
    return start;
  }

  const Design& design_;
  std::string kind_;
  double deviation_ = 0, cutoff_ = 0, words_ = 1;
};

/// reset_parameters() of the authors' classes.
std::vector<StartRule> llada_starts(const FamilyConfig& config, const Design& design) {
  return Starts(config, design).rules();
}

const Family kFamily{
    .name = "llada",
    .model_types = {"llada"},
    .classes = {"LLaDA"},
    .heads = {{HeadKind::kMasked, "ModelLM"}},
    .loads = "LLaDA 8B and its relatives without experts, with the head or without",
    .plan = make_plan,
    .starts = llada_starts,
    .files = {.wide_configs =
                  {R"("include_bias": true, "weight_tying": false, "attention_layer_norm": true)"},
              .vocab_fields = {"vocab_size", "embedding_size"},
              .tie_field = "weight_tying",
              .least_config = R"("block_type": "llama", "rope": true, "activation_type": "silu")"},
};
const FamilyRegistration kRegistration{kFamily};

}  // namespace
}  // namespace masque::model
