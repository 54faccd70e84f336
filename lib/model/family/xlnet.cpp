// XLNet: relative positions and segments in every layer, a content and a query stream. Yang 2019,
// arXiv:1906.08237. Tensors of a layer are (hidden, heads, head size).
#include <cmath>

#include "model/encoder_family.hpp"

namespace masque::model {
namespace {

const Names kVocabFields{"vocab_size", "n_token"};

DefaultMask read_mask(const FamilyConfig& config) {
  const std::string type = config.text("attn_type", "bi");
  if (type != "bi" && type != "uni") config.refuse("attn_type", "\"bi\" or \"uni\"");
  return type == "uni" ? DefaultMask::kCausal : DefaultMask::kFull;
}

Design read_design(const FamilyConfig& config) {
  config.expect_flag("bi_data", false);
  config.expect_flag("same_length", false);
  config.expect_flag("untie_r", true);
  Design design;
  design.family = "xlnet";
  design.model_type = config.raw().model_type();
  design.vocab_size = config.size(kVocabFields, 32000);
  design.hidden_size = config.size({"d_model", "hidden_size"}, 1024);
  design.embedding_size = design.hidden_size;
  design.num_hidden_layers = config.layers({"n_layer", "num_hidden_layers"}, 24);
  design.num_attention_heads = config.size({"n_head", "num_attention_heads"}, 16);
  split_heads(design, config, "d_model", "n_head");
  design.head_size = config.size({"d_head"}, design.head_size);
  design.attention_scale = 1 / std::sqrt(static_cast<double>(design.head_size));
  design.intermediate_size = config.size({"d_inner"}, 4096);
  design.pad_token_id = config.has("pad_token_id") ? config.optional_count("pad_token_id") : 5;
  design.position = PositionType::kXlnet;
  const double clamp = config.number("clamp_len", -1);
  if (clamp > 0) design.distance_clamp = config.size({"clamp_len"}, 1);
  design.norm.epsilon = config.positive("layer_norm_eps", 1e-12);
  design.activation = config.activation("ff_activation", "gelu");
  design.mask = read_mask(config);
  design.streams = Streams::kTwo;
  fill_layers(design);
  return design;
}

ModelPlan make_plan(const FamilyConfig& config) {
  ModelPlan plan;
  plan.prefix = "transformer.";
  plan.design = read_design(config);
  const auto u = [](Index size) { return static_cast<std::uint64_t>(size); };
  const std::uint64_t hidden = u(plan.design.hidden_size);
  const std::uint64_t heads = u(plan.design.num_attention_heads);
  const std::uint64_t size = u(plan.design.head_size);
  const Shape whole{hidden, heads, size};
  const Shape vector{heads, size};
  const std::string layer = "~layer.{l}.";
  const auto into = [&](const char* name, Role role, TensorLayout layout) {
    return TensorRow{layer + "rel_attn." + name, {role}, Parts::kTensor, layout, whole};
  };
  const auto bias = [&](const char* name, Role role) {
    return TensorRow{
        layer + "rel_attn." + name, {role}, Parts::kTensor, TensorLayout::kOutIn, vector};
  };
  plan.rows = {
      {"~word_embedding", {Role::kWordTable}, Parts::kWeight},
      {"~mask_emb", {Role::kQueryStart}, Parts::kTensor, TensorLayout::kOutIn, {1, 1, hidden}},
      into("q", Role::kQuery, TensorLayout::kInOut),
      into("k", Role::kKey, TensorLayout::kInOut),
      into("v", Role::kValue, TensorLayout::kInOut),
      into("r", Role::kRelative, TensorLayout::kInOut),
      into("o", Role::kOutput, TensorLayout::kOutIn),
      bias("r_w_bias", Role::kContentBias),
      bias("r_r_bias", Role::kPositionBias),
      bias("r_s_bias", Role::kSegmentBias),
      {layer + "rel_attn.seg_embed",
       {Role::kLayerSegmentTable},
       Parts::kTensor,
       TensorLayout::kOutIn,
       {2, heads, size}},
      {layer + "rel_attn.layer_norm", {Role::kAttentionNorm}},
      {layer + "ff.layer_1", {Role::kUp}},
      {layer + "ff.layer_2", {Role::kDown}},
      {layer + "ff.layer_norm", {Role::kFeedForwardNorm}},
  };
  plan.heads = {{
      .design = vocabulary_head(plan.design, config),
      .what = "LM head",
      .evidence = "lm_loss.bias",
      .decoder = "lm_loss.weight",
      .rows = {{"lm_loss.bias", {Role::kDecoder}, Parts::kBiasTensor}},
  }};
  return plan;
}

const Family kFamily{
    .name = "xlnet",
    .model_types = {"xlnet"},
    .classes = {"XLNet"},
    .heads = {{HeadKind::kMasked, "LMHeadModel"}, {HeadKind::kCausal, "LMHeadModel"}},
    .loads = "XLNet, both streams, with its LM head or without",
    .plan = make_plan,
    .starts = unpadded_starts,
    .files = {.vocab_fields = {kVocabFields.begin(), kVocabFields.end()}},
};
const FamilyRegistration kRegistration{kFamily};

}  // namespace
}  // namespace masque::model
