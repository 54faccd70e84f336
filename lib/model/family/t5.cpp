// T5, mT5 and UL2: an encoder, and a decoder that reads its states. Pre-norm with RMS norms, no
// biases, positions as a bias by distance that all layers of a part share. Raffel 2019,
// arXiv:1910.10683; Xue 2020, arXiv:2010.11934; Tay 2022, arXiv:2205.05131.
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

/// The design of the encoder, or with `decoder` of that part.
Design read_design(const FamilyConfig& config, bool decoder) {
  const bool multilingual = config.raw().model_type() == "mt5";
  Design design;
  design.family = "t5";
  design.model_type = config.raw().model_type();
  design.vocab_size = config.size({"vocab_size"}, multilingual ? 250112 : 32128);
  design.hidden_size = config.size({"d_model", "hidden_size"}, 512);
  design.embedding_size = design.hidden_size;
  design.num_hidden_layers =
      config.layers({"num_layers", "num_hidden_layers"}, multilingual ? 8 : 6);
  if (decoder)
    design.num_hidden_layers = config.layers({"num_decoder_layers"}, design.num_hidden_layers);
  design.num_attention_heads =
      config.size({"num_heads", "num_attention_heads"}, multilingual ? 6 : 8);
  design.num_key_value_heads = design.num_attention_heads;
  design.head_size = config.size({"d_kv", "head_dim"}, 64);
  design.intermediate_size = config.size({"d_ff"}, multilingual ? 1024 : 2048);
  design.pad_token_id = config.has("pad_token_id") ? config.optional_count("pad_token_id") : 0;
  design.position = PositionType::kT5;
  design.relative_backwards = decoder;
  design.relative_buckets = config.size({"relative_attention_num_buckets"}, 32);
  design.relative_max_distance = config.size({"relative_attention_max_distance"}, 128);
  if (design.relative_buckets < 4) {
    config.refuse("relative_attention_num_buckets", "at least 4");
  }
  // Distances of the first half of a direction's buckets are exact.
  const Index exact = design.relative_buckets / (decoder ? 2 : 4);
  if (design.relative_max_distance <= exact || design.relative_max_distance > kFarthest) {
    config.refuse("relative_attention_max_distance",
                  fmt::format("more than {} of the buckets, at most {}",
                              decoder ? "half" : "a quarter", kFarthest));
  }
  design.norm_placement = NormPlacement::kPre;
  design.norm = {kernel::Norm::kRms, config.positive("layer_norm_epsilon", 1e-6)};
  design.final_norm = true;
  read_feed_forward(design, config, multilingual ? "gated-gelu" : "relu");
  if (decoder) {
    design.mask = DefaultMask::kCausal;
    design.source = SourceDesign{.start_token_id = config.optional_count("decoder_start_token_id")};
    if (multilingual && !config.has("decoder_start_token_id")) design.source->start_token_id = 0;
  }
  fill_layers(design);
  return design;
}

/// The rows of a stack, "encoder" or "decoder", of `design`.
std::vector<TensorRow> stack_rows(const Design& design, const std::string& stack) {
  const std::string block = stack + ".block.{l}.layer.";
  const std::string inner = block + (design.source ? "2." : "1.");
  std::vector<TensorRow> rows = {
      {stack + ".embed_tokens|shared", {Role::kWordTable}, Parts::kWeight},
      {stack + ".block.0.layer.0.SelfAttention.relative_attention_bias",
       {Role::kRelativeTable},
       Parts::kWeight},
      {block + "0.layer_norm", {Role::kAttentionNorm}, Parts::kWeight},
      {block + "0.SelfAttention.q", {Role::kQuery}, Parts::kWeight},
      {block + "0.SelfAttention.k", {Role::kKey}, Parts::kWeight},
      {block + "0.SelfAttention.v", {Role::kValue}, Parts::kWeight},
      {block + "0.SelfAttention.o", {Role::kOutput}, Parts::kWeight},
      {inner + "layer_norm", {Role::kFeedForwardNorm}, Parts::kWeight},
      {inner + "DenseReluDense.wo", {Role::kDown}, Parts::kWeight},
      {stack + ".final_layer_norm", {Role::kFinalNorm}, Parts::kWeight},
  };
  if (design.source) {
    append(rows, {{block + "1.layer_norm", {Role::kSourceNorm}, Parts::kWeight},
                  {block + "1.EncDecAttention.q", {Role::kSourceQuery}, Parts::kWeight},
                  {block + "1.EncDecAttention.k", {Role::kSourceKey}, Parts::kWeight},
                  {block + "1.EncDecAttention.v", {Role::kSourceValue}, Parts::kWeight},
                  {block + "1.EncDecAttention.o", {Role::kSourceOutput}, Parts::kWeight}});
  }
  if (design.gated) {
    rows.push_back({inner + "DenseReluDense.wi_0", {Role::kGate}, Parts::kWeight});
    rows.push_back({inner + "DenseReluDense.wi_1", {Role::kUp}, Parts::kWeight});
  } else {
    rows.push_back({inner + "DenseReluDense.wi", {Role::kUp}, Parts::kWeight});
  }
  return rows;
}

ModelPlan make_plan(const FamilyConfig& config) {
  ModelPlan plan;
  plan.design = read_design(config, false);
  plan.rows = stack_rows(plan.design, "encoder");
  plan.design.missing_head = kEncoderAlone;
  plan.tied_tables = "decoder.embed_tokens.weight";
  if (config.flag("tie_word_embeddings", true)) plan.tied_tables += "|lm_head.weight";
  plan.skipped = {{"decoder.", "the decoder"}, {"lm_head.", "the decoder's head"}};
  return plan;
}

ModelPlan make_decoder_plan(const FamilyConfig& config) {
  config.expect_flag("is_encoder_decoder", true);
  if (config.has("is_causal")) config.refuse("is_causal", "no value");
  ModelPlan plan;
  plan.design = read_design(config, true);
  plan.rows = stack_rows(plan.design, "decoder");
  // transformers ties the head whatever config.json says, unless the file has another one. mT5
  // never scales what it reads.
  const bool states_tie = config.flag("tie_word_embeddings", true);
  HeadDesign head = vocabulary_head(plan.design, config);
  if (plan.design.model_type != "mt5" && config.flag("scale_decoder_outputs", states_tie))
    head.scale = 1 / std::sqrt(static_cast<double>(plan.design.hidden_size));
  for (const bool tied : {false, true}) {
    if (!tied && states_tie) continue;
    head.tied = tied;
    plan.heads.push_back(bare_head(head, config, "decoder's head", "lm_head.weight"));
  }
  plan.tied_tables = "encoder.embed_tokens.weight";
  // The last one is a table that published files have and no class reads.
  plan.skipped = {{"encoder.", "the encoder"},
                  {"decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.", ""}};
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
      {Role::kSourceQuery, over_root(design.hidden_size * design.head_size)},
      {Role::kSourceKey, inner},
      {Role::kSourceValue, inner},
      {Role::kSourceOutput, over_root(design.num_attention_heads * design.head_size)},
      {Role::kUp, inner},
      {Role::kGate, inner},
      {Role::kDown, over_root(design.intermediate_size)},
      {Role::kAttentionNorm, norm},
      {Role::kSourceNorm, norm},
      {Role::kFeedForwardNorm, norm},
      {Role::kFinalNorm, norm},
  };
}

const Family kFamily{
    .name = "t5",
    .model_types = {"t5", "mt5"},
    .classes = {"T5", "MT5"},
    .heads = {{HeadKind::kNone, "EncoderModel"}, {HeadKind::kCausal, "ForConditionalGeneration"}},
    .loads = "T5, mT5 and UL2: encoder and decoder, or the encoder alone",
    .plan = make_plan,
    .starts = t5_starts,
    .files = {.wide_configs = {R"("feed_forward_proj": "gated-gelu")"},
              .decoder_weight = "lm_head.weight",
              .vocabulary = {"encoder.embed_tokens.weight", "decoder.embed_tokens.weight"},
              .tied_head_differs = true},
    .decoder = make_decoder_plan,
};
const FamilyRegistration kRegistration{kFamily};

}  // namespace
}  // namespace masque::model
