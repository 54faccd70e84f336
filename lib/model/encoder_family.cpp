#include "model/encoder_family.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

namespace masque::model {

Design encoder_design(const FamilyConfig& config, std::string_view family,
                      const EncoderDefaults& defaults) {
  if (!defaults.any_position) config.expect_text("position_embedding_type", "absolute");
  Design design;
  design.family = family;
  design.model_type = config.raw().model_type();
  design.vocab_size = config.size({"vocab_size"}, defaults.vocab_size);
  design.hidden_size = config.size({"hidden_size"}, defaults.hidden_size);
  design.embedding_size = design.hidden_size;
  design.num_hidden_layers = config.layers({"num_hidden_layers"}, defaults.num_hidden_layers);
  design.num_attention_heads = config.size({"num_attention_heads"}, defaults.num_attention_heads);
  design.intermediate_size = config.size({"intermediate_size"}, defaults.intermediate_size);
  design.max_position_embeddings =
      config.size({"max_position_embeddings"}, defaults.max_position_embeddings);
  design.type_vocab_size = config.count({"type_vocab_size"}, defaults.type_vocab_size);
  design.pad_token_id =
      config.has("pad_token_id") ? config.optional_count("pad_token_id") : defaults.pad_token_id;
  read_mask_token(design, config);
  design.norm.epsilon = config.positive("layer_norm_eps", defaults.layer_norm_eps);
  design.embedding_norm = design.norm;
  design.activation = config.activation("hidden_act", defaults.hidden_act);
  split_heads(design, config, "hidden_size", "num_attention_heads");
  fill_layers(design);
  return design;
}

void read_mask_token(Design& design, const FamilyConfig& config) {
  if (const auto mask = config.optional_count("mask_token_id")) {
    design.mask_token_id = static_cast<TokenId>(*mask);
  }
}

void fill_layers(Design& design, const LayerDesign& layer) {
  design.layers.assign(static_cast<std::size_t>(design.num_hidden_layers), layer);
  for (std::size_t i = 0; i < design.layers.size(); ++i) {
    design.layers[i].weights = static_cast<Index>(i);
  }
}

void split_heads(Design& design, const FamilyConfig& config, std::string_view hidden_name,
                 std::string_view heads_name) {
  if (design.hidden_size % design.num_attention_heads != 0) {
    config.refuse(heads_name,
                  fmt::format("a divisor of {}, which is {}", hidden_name, design.hidden_size));
  }
  design.num_key_value_heads = design.num_attention_heads;
  design.head_size = design.hidden_size / design.num_attention_heads;
  design.attention_scale = 1 / std::sqrt(static_cast<double>(design.head_size));
}

void read_is_decoder(Design& design, const FamilyConfig& config) {
  config.expect_flag("add_cross_attention", false);
  if (config.flag("is_decoder", false)) design.mask = DefaultMask::kCausal;
}

std::vector<TensorRow> embedding_rows(const Design& design, bool position_table) {
  std::vector<TensorRow> rows{{"~embeddings.word_embeddings", {Role::kWordTable}, Parts::kWeight}};
  if (position_table) {
    rows.push_back({"~embeddings.position_embeddings", {Role::kPositionTable}, Parts::kWeight});
  }
  if (design.type_vocab_size > 0) {
    rows.push_back({"~embeddings.token_type_embeddings", {Role::kSegmentTable}, Parts::kWeight});
  }
  rows.push_back({"~embeddings.LayerNorm", {Role::kEmbeddingNorm}});
  return rows;
}

std::vector<BufferTensor> embedding_buffers(bool type_ids) {
  using Content = BufferTensor::Content;
  std::vector<BufferTensor> buffers{{"embeddings.position_ids", Content::kCount}};
  if (type_ids) buffers.push_back({"embeddings.token_type_ids", Content::kZero});
  return buffers;
}

std::vector<TensorRow> encoder_layer_rows(std::string_view query, std::string_view key,
                                          std::string_view value) {
  const std::string layer = "~encoder.layer.{l}.";
  return {
      {layer + std::string(query), {Role::kQuery}},
      {layer + std::string(key), {Role::kKey}},
      {layer + std::string(value), {Role::kValue}},
      {layer + "attention.output.dense", {Role::kOutput}},
      {layer + "attention.output.LayerNorm", {Role::kAttentionNorm}},
      {layer + "intermediate.dense", {Role::kUp}},
      {layer + "output.dense", {Role::kDown}},
      {layer + "output.LayerNorm", {Role::kFeedForwardNorm}},
  };
}

HeadDesign vocabulary_head(const Design& design, const FamilyConfig& config) {
  HeadDesign head;
  head.kind = design.mask == DefaultMask::kCausal ? HeadKind::kCausal : HeadKind::kMasked;
  head.tied = config.flag("tie_word_embeddings", true);
  return head;
}

HeadDesign transform_head(const Design& design, const FamilyConfig& config,
                          kernel::Activation activation) {
  HeadDesign head = vocabulary_head(design, config);
  head.transform = true;
  head.activation = activation;
  head.norm = design.norm;
  return head;
}

std::string bare_head_evidence(const HeadDesign& head, const FamilyConfig& config,
                               std::string_view decoder) {
  const std::vector<std::string> classes = config.raw().architectures();
  const auto predicts = [](const std::string& name) {
    constexpr std::array<std::string_view, 8> kEnds{
        "LMHeadModel",      "ForCausalLM", "ForMaskedLM", "ForPreTraining",
        "DoubleHeadsModel", "ModelLM",     "DreamModel",  "ForConditionalGeneration"};
    return std::ranges::any_of(kEnds, [&](std::string_view end) { return name.ends_with(end); });
  };
  const bool saved = classes.empty() || std::ranges::any_of(classes, predicts);
  return head.tied && saved ? std::string() : std::string(decoder);
}

HeadPlan bare_head(const HeadDesign& head, const FamilyConfig& config, std::string_view what,
                   std::string_view decoder) {
  HeadPlan plan;
  plan.design = head;
  plan.what = what;
  plan.evidence = bare_head_evidence(head, config, decoder);
  plan.decoder = decoder;
  return plan;
}

HeadPlan bert_head(const Design& design, const FamilyConfig& config) {
  HeadPlan head;
  head.design = transform_head(design, config, design.activation);
  head.what = head.design.kind == HeadKind::kCausal ? "causal-LM head" : "masked-LM head";
  head.evidence = "cls.predictions.transform.dense.weight|cls.predictions.bias";
  head.decoder = "cls.predictions.decoder.weight";
  head.rows = {
      {"cls.predictions.transform.dense", {Role::kHeadTransform}},
      {"cls.predictions.transform.LayerNorm", {Role::kHeadNorm}},
      {"cls.predictions.decoder.bias|cls.predictions.bias", {Role::kDecoder}, Parts::kBiasTensor},
  };
  return head;
}

HeadPlan roberta_head(const Design& design, const FamilyConfig& config) {
  HeadPlan head;
  head.design = transform_head(design, config, kernel::Activation::kGelu);
  head.what = head.design.kind == HeadKind::kCausal ? "causal-LM head" : "masked-LM head";
  head.evidence = "lm_head.dense.weight|lm_head.bias";
  head.decoder = "lm_head.decoder.weight";
  head.rows = {
      {"lm_head.dense", {Role::kHeadTransform}},
      {"lm_head.layer_norm", {Role::kHeadNorm}},
      {"lm_head.decoder.bias|lm_head.bias", {Role::kDecoder}, Parts::kBiasTensor},
  };
  return head;
}

std::vector<StartRule> padded_position_starts(const FamilyConfig& config, const Design& design) {
  std::vector<StartRule> rules = padded_starts(config, design);
  rules.push_back({Role::kPositionTable, rules[0].start});
  return rules;
}

void append(std::vector<TensorRow>& rows, std::vector<TensorRow> more) {
  for (TensorRow& row : more) rows.push_back(std::move(row));
}

}  // namespace masque::model
