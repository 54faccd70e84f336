// T5 and mT5: the encoder. Pre-norm with RMS norms, no biases, positions as a bias by distance that
// all layers share. Raffel 2019, arXiv:1910.10683; Xue 2020, arXiv:2010.11934.
#include <cmath>

#include <fmt/format.h>

#include "model/encoder_family.hpp"

namespace masque::model {
namespace {

constexpr Index kFarthest = 65536;  // a table of all distances up to it is made

/// "relu", "gated-gelu", …; the latter means the tanh form.
void read_feed_forward(Design& design, const FamilyConfig& config, std::string_view fallback) {
  constexpr std::string_view kGated = "gated-";
  std::string name = config.text("feed_forward_proj", fallback);
  if (name.starts_with(kGated)) {
    design.gated = true;
    name = name == "gated-gelu" ? "gelu_new" : name.substr(kGated.size());
  }
  const auto activation = kernel::find_activation(name);
  if (!activation) config.refuse("feed_forward_proj", "an activation, or gated- followed by one");
  design.activation = *activation;
}

Design read_design(const FamilyConfig& config) {
  const bool multilingual = config.raw().model_type() == "mt5";
  Design design;
  design.family = "t5";
  design.model_type = config.raw().model_type();
  design.vocab_size = config.size({"vocab_size"}, multilingual ? 250112 : 32128);
  design.hidden_size = config.size({"d_model", "hidden_size"}, 512);
  design.embedding_size = design.hidden_size;
  design.num_hidden_layers =
      config.layers({"num_layers", "num_hidden_layers"}, multilingual ? 8 : 6);
  design.num_attention_heads =
      config.size({"num_heads", "num_attention_heads"}, multilingual ? 6 : 8);
  design.num_key_value_heads = design.num_attention_heads;
  design.head_size = config.size({"d_kv", "head_dim"}, 64);
  design.intermediate_size = config.size({"d_ff"}, multilingual ? 1024 : 2048);
  design.pad_token_id = config.has("pad_token_id") ? config.optional_count("pad_token_id") : 0;
  design.position = PositionType::kT5;
  design.relative_buckets = config.size({"relative_attention_num_buckets"}, 32);
  design.relative_max_distance = config.size({"relative_attention_max_distance"}, 128);
  if (design.relative_buckets < 4) {
    config.refuse("relative_attention_num_buckets", "at least 4");
  }
  if (design.relative_max_distance <= design.relative_buckets / 4 ||
      design.relative_max_distance > kFarthest) {
    config.refuse("relative_attention_max_distance",
                  fmt::format("more than a quarter of the buckets, at most {}", kFarthest));
  }
  design.norm_placement = NormPlacement::kPre;
  design.norm = {kernel::Norm::kRms, config.positive("layer_norm_epsilon", 1e-6)};
  design.final_norm = true;
  read_feed_forward(design, config, multilingual ? "gated-gelu" : "relu");
  fill_layers(design);
  return design;
}

ModelPlan make_plan(const FamilyConfig& config) {
  ModelPlan plan;
  plan.design = read_design(config);
  const std::string attention = "encoder.block.{l}.layer.0.";
  const std::string inner = "encoder.block.{l}.layer.1.";
  plan.rows = {
      {"encoder.embed_tokens|shared", {Role::kWordTable}, Parts::kWeight},
      {"encoder.block.0.layer.0.SelfAttention.relative_attention_bias",
       {Role::kRelativeTable},
       Parts::kWeight},
      {attention + "layer_norm", {Role::kAttentionNorm}, Parts::kWeight},
      {attention + "SelfAttention.q", {Role::kQuery}, Parts::kWeight},
      {attention + "SelfAttention.k", {Role::kKey}, Parts::kWeight},
      {attention + "SelfAttention.v", {Role::kValue}, Parts::kWeight},
      {attention + "SelfAttention.o", {Role::kOutput}, Parts::kWeight},
      {inner + "layer_norm", {Role::kFeedForwardNorm}, Parts::kWeight},
      {inner + "DenseReluDense.wo", {Role::kDown}, Parts::kWeight},
      {"encoder.final_layer_norm", {Role::kFinalNorm}, Parts::kWeight},
  };
  if (plan.design.gated) {
    plan.rows.push_back({inner + "DenseReluDense.wi_0", {Role::kGate}, Parts::kWeight});
    plan.rows.push_back({inner + "DenseReluDense.wi_1", {Role::kUp}, Parts::kWeight});
  } else {
    plan.rows.push_back({inner + "DenseReluDense.wi", {Role::kUp}, Parts::kWeight});
  }
  plan.design.missing_head = "only the encoder is used, which has no head";
  plan.tied_tables = "decoder.embed_tokens.weight";
  if (config.flag("tie_word_embeddings", true)) plan.tied_tables += "|lm_head.weight";
  plan.skipped = {{"decoder.", "the decoder"}, {"lm_head.", "the decoder's head"}};
  return plan;
}

/// T5PreTrainedModel._init_weights: deviations by the widths, as the scores are not scaled.
std::vector<StartRule> t5_starts(const FamilyConfig& config, const Design& design) {
  const double factor = config.number("initializer_factor", 1);
  if (!(factor >= 0)) config.refuse("initializer_factor", "a number from 0");
  const auto over_root = [&](Index size) {
    return StartValue::normal(factor / std::sqrt(static_cast<double>(size)));
  };
  const StartValue inner = over_root(design.hidden_size);
  const StartValue norm = StartValue::constant(factor);
  return {
      {Role::kWordTable, StartValue::normal(factor)},
      {Role::kRelativeTable, inner},
      {Role::kQuery, over_root(design.hidden_size * design.head_size)},
      {Role::kKey, inner},
      {Role::kValue, inner},
      {Role::kOutput, over_root(design.num_attention_heads * design.head_size)},
      {Role::kUp, inner},
      {Role::kGate, inner},
      {Role::kDown, over_root(design.intermediate_size)},
      {Role::kAttentionNorm, norm},
      {Role::kFeedForwardNorm, norm},
      {Role::kFinalNorm, norm},
  };
}

const Family kFamily{
    .name = "t5",
    .model_types = {"t5", "mt5"},
    .classes = {"T5", "MT5"},
    .heads = {{HeadKind::kNone, "EncoderModel"}},
    .loads = "the encoder of T5 and mT5, from whole models too",
    .plan = make_plan,
    .starts = t5_starts,
    .files = {.wide_configs = {R"("feed_forward_proj": "gated-gelu")"},
              .lm_classes = {"ForConditionalGeneration"},
              .decoder_weight = "lm_head.weight",
              .vocabulary = {"encoder.embed_tokens.weight", "decoder.embed_tokens.weight"},
              .tied_head_differs = true},
};
const FamilyRegistration kRegistration{kFamily};

}  // namespace
}  // namespace masque::model
