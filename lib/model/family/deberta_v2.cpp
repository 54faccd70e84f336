// DeBERTa v2 and v3: scores of content and relative position kept apart. He 2020, arXiv:2006.03654;
// He 2021, arXiv:2111.09543.
#include <algorithm>
#include <cmath>

#include "base/string/split.hpp"
#include "model/encoder_family.hpp"

namespace masque::model {
namespace {

/// The items of "p2c|c2p" or of a list.
bool has_item(const FamilyConfig& config, std::string_view name, std::string_view item) {
  const auto is_item = [&](std::string_view found) {
    return std::ranges::equal(trim(found), item, {}, [](char c) {
      return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    });
  };
  if (!config.has(name)) return false;
  if (const auto text = config.raw().string(name))
    return std::ranges::any_of(split(*text, '|'), is_item);
  return std::ranges::any_of(config.raw().strings(name).value_or(std::vector<std::string>()),
                             is_item);
}

/// A size where a number below 1 means none.
Index size_or_none(const FamilyConfig& config, std::string_view name) {
  return config.number(name, -1) < 1 ? -1 : config.size({name}, 1);
}

void read_relative(Design& design, const FamilyConfig& config) {
  design.content_to_position = has_item(config, "pos_att_type", "c2p");
  design.position_to_content = has_item(config, "pos_att_type", "p2c");
  const int terms = 1 + int{design.content_to_position} + int{design.position_to_content};
  design.attention_scale = 1 / std::sqrt(static_cast<double>(design.head_size * terms));
  const bool absolute = config.flag("position_biased_input", true);
  design.position = absolute ? PositionType::kLearned : PositionType::kNone;
  if (!config.flag("relative_attention", false)) {
    design.content_to_position = false;
    design.position_to_content = false;
    return;
  }
  design.position = PositionType::kDisentangled;
  design.share_attention_key = config.flag("share_att_key", false);
  design.position_buckets = size_or_none(config, "position_buckets");
  const Index longest = size_or_none(config, "max_relative_positions");
  design.max_relative_positions = longest < 0 ? design.max_position_embeddings : longest;
  if (design.position_buckets >= design.max_relative_positions) {
    config.refuse("position_buckets", "fewer than max_relative_positions");
  }
  // Half of them are distances of their own; a half of 1 has no logarithm.
  if (design.position_buckets == 1) config.refuse("position_buckets", "none or at least 2");
  design.relative_norm = has_item(config, "norm_rel_ebd", "layer_norm");
}

Design read_design(const FamilyConfig& config) {
  Design design = encoder_design(config, "deberta_v2",
                                 {.vocab_size = 128100,
                                  .hidden_size = 1536,
                                  .num_hidden_layers = 24,
                                  .num_attention_heads = 24,
                                  .intermediate_size = 6144,
                                  .type_vocab_size = 0,
                                  .layer_norm_eps = 1e-7});
  config.expect_number("embedding_size", static_cast<double>(design.hidden_size));
  config.expect_number("attention_head_size", static_cast<double>(design.head_size));
  read_relative(design, config);
  // Relative distances end at the table's edges, so that no text is too long for them.
  if (!config.flag("position_biased_input", true)) design.max_position_embeddings = 0;
  design.convolution_size = config.count({"conv_kernel_size"}, 0);
  if (design.convolution_size > 0) {
    config.expect_number("conv_groups", 1);
    if (design.convolution_size % 2 == 0) config.refuse("conv_kernel_size", "an odd number");
    design.convolution_activation = config.activation("conv_act", "tanh");
  }
  return design;
}

std::vector<TensorRow> relative_rows(const Design& design) {
  std::vector<TensorRow> rows;
  if (design.position == PositionType::kDisentangled) {
    rows.push_back({"~encoder.rel_embeddings", {Role::kRelativeTable}, Parts::kWeight});
  }
  if (design.relative_norm) rows.push_back({"~encoder.LayerNorm", {Role::kRelativeNorm}});
  const std::string self = "~encoder.layer.{l}.attention.self.";
  if (!design.share_attention_key) {
    if (design.content_to_position) rows.push_back({self + "pos_key_proj", {Role::kPositionKey}});
    if (design.position_to_content) {
      rows.push_back({self + "pos_query_proj", {Role::kPositionQuery}});
    }
  }
  if (design.convolution_size > 0) {
    const auto hidden = static_cast<std::uint64_t>(design.hidden_size);
    const auto size = static_cast<std::uint64_t>(design.convolution_size);
    rows.push_back({"~encoder.conv.conv",
                    {Role::kConvolution},
                    Parts::kBoth,
                    TensorLayout::kOutIn,
                    {hidden, hidden, size}});
    rows.push_back({"~encoder.conv.LayerNorm", {Role::kConvolutionNorm}});
  }
  return rows;
}

/// Microsoft's own head, which transformers calls not legacy: always tied.
HeadPlan own_head(const Design& design, const FamilyConfig& config) {
  HeadPlan head;
  head.design = transform_head(design, config, design.activation);
  head.design.tied = true;
  head.what = "masked-LM head";
  head.evidence = "lm_predictions.lm_head.dense.weight";
  head.rows = {
      {"lm_predictions.lm_head.dense", {Role::kHeadTransform}},
      {"lm_predictions.lm_head.LayerNorm", {Role::kHeadNorm}},
      {"lm_predictions.lm_head.bias", {Role::kDecoder}, Parts::kBiasTensor},
  };
  return head;
}

ModelPlan make_plan(const FamilyConfig& config) {
  ModelPlan plan;
  plan.prefix = "deberta.";
  plan.design = read_design(config);
  plan.rows = embedding_rows(plan.design, config.flag("position_biased_input", true));
  append(plan.rows, encoder_layer_rows("attention.self.query_proj", "attention.self.key_proj",
                                       "attention.self.value_proj"));
  append(plan.rows, relative_rows(plan.design));
  plan.heads = {bert_head(plan.design, config), own_head(plan.design, config)};
  if (!config.flag("legacy", true)) std::ranges::reverse(plan.heads);
  plan.skipped = {{"mask_predictions.", "the replaced-token head"}};
  if (!config.flag("position_biased_input", true)) {
    for (const char* prefix : {"deberta.", ""})
      plan.skipped.push_back({std::string(prefix) + "embeddings.position_embeddings.",
                              "the position table, which config.json leaves out"});
  }
  plan.buffers = embedding_buffers(false);
  return plan;
}

const Family kFamily{
    .name = "deberta_v2",
    .model_types = {"deberta-v2"},
    .classes = {"DebertaV2"},
    .heads = {{HeadKind::kMasked, "ForMaskedLM"}},
    .loads = "DeBERTa v2 and v3, with either masked-LM head or without",
    .plan = make_plan,
    .files =
        {.wide_configs =
             {R"("relative_attention": true, "pos_att_type": "c2p|p2c", "norm_rel_ebd": "layer_norm", "conv_kernel_size": 3, "type_vocab_size": 2)"}},
};
const FamilyRegistration kRegistration{kFamily};

}  // namespace
}  // namespace masque::model
