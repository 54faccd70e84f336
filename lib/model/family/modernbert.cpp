// ModernBERT: pre-norm encoder with rotary positions, gated feed-forward, and windows in most
// layers. Warner 2024, arXiv:2412.13663.
#include <cmath>
#include <utility>

#include "model/decoder_family.hpp"
#include "model/encoder_family.hpp"
#include "model/rotary_config.hpp"

namespace masque::model {
namespace {

/// The angles of one kind of layers: rope_parameters has an object for each.
RotaryDesign rotary_of(const FamilyConfig& config, std::string_view kind, Design& design) {
  const bool global = kind == kFullAttention;
  const FamilyConfig parameters = config.object("rope_parameters").value_or(config);
  RotaryDefaults defaults{.theta = global ? 160000.0 : 10000.0,
                          .theta_name = global ? "global_rope_theta" : "local_rope_theta",
                          .parameters_name = kind,
                          .fixed_share = true};
  defaults.theta = config.positive(defaults.theta_name, defaults.theta);
  return read_rotary(parameters, defaults, design.head_size, design.max_position_embeddings,
                     design.notes);
}

void read_layers(Design& design, const FamilyConfig& config) {
  if (config.has("rope_scaling")) config.refuse("rope_scaling", "no value");
  const RotaryDesign global_rotary = rotary_of(config, kFullAttention, design);
  const RotaryDesign local_rotary = rotary_of(config, kSlidingAttention, design);
  const Index window = config.size({"local_attention"}, 128) / 2;
  const Index every = config.size({"global_attn_every_n_layers"}, 3);
  std::vector<bool> local = all_layers(design, true);
  for (std::size_t i = 0; i < local.size(); i += static_cast<std::size_t>(every)) local[i] = false;
  local = read_local_layers(design, config, std::move(local));
  fill_layers(design);
  for (std::size_t i = 0; i < local.size(); ++i) {
    LayerDesign& layer = design.layers[i];
    layer.rotary = local[i] ? local_rotary : global_rotary;
    if (local[i]) layer.window = window;
    layer.input_norm = i > 0;
  }
}

Design read_design(const FamilyConfig& config) {
  Design design;
  design.family = "modernbert";
  design.model_type = config.raw().model_type();
  design.vocab_size = config.size({"vocab_size"}, 50368);
  design.hidden_size = config.size({"hidden_size"}, 768);
  design.embedding_size = design.hidden_size;
  design.num_hidden_layers = config.layers({"num_hidden_layers"}, 22);
  design.num_attention_heads = config.size({"num_attention_heads"}, 12);
  design.intermediate_size = config.size({"intermediate_size"}, 1152);
  design.max_position_embeddings = config.size({"max_position_embeddings"}, 8192);
  design.pad_token_id = config.has("pad_token_id") ? config.optional_count("pad_token_id") : 50283;
  design.norm_placement = NormPlacement::kPre;
  design.norm.epsilon = config.positive("norm_eps", 1e-5);
  design.embedding_norm = design.norm;
  design.final_norm = true;
  design.activation = config.activation("hidden_activation", "gelu");
  design.gated = true;
  design.position = PositionType::kRotary;
  split_heads(design, config, "hidden_size", "num_attention_heads");
  read_layers(design, config);
  return design;
}

HeadPlan read_head(const Design& design, const FamilyConfig& config, Parts norm) {
  HeadPlan head;
  head.design = transform_head(design, config, config.activation("classifier_activation", "gelu"));
  head.what = "masked-LM head";
  head.decoder = "decoder.weight";
  const Parts dense = config.flag("classifier_bias", false) ? Parts::kBoth : Parts::kWeight;
  head.rows = {{"head.dense", {Role::kHeadTransform}, dense},
               {"head.norm", {Role::kHeadNorm}, norm}};
  // Classifiers have head.dense too, so that it says little.
  if (config.flag("decoder_bias", true)) {
    head.rows.push_back({"decoder.bias", {Role::kDecoder}, Parts::kBiasTensor});
    head.evidence = "decoder.bias|decoder.weight";
  } else {
    const bool saved = bare_head_evidence(head.design, config, "decoder.weight").empty();
    head.evidence = saved ? "head.dense.weight" : "decoder.weight";
  }
  return head;
}

ModelPlan make_plan(const FamilyConfig& config) {
  ModelPlan plan;
  plan.prefix = "model.";
  plan.design = read_design(config);
  const auto parts = [&](const char* flag) {
    return config.flag(flag, false) ? Parts::kBoth : Parts::kWeight;
  };
  const Parts norm = parts("norm_bias");
  const Parts attention = parts("attention_bias");
  const Parts inner = parts("mlp_bias");
  plan.rows = {
      {"~embeddings.tok_embeddings", {Role::kWordTable}, Parts::kWeight},
      {"~embeddings.norm", {Role::kEmbeddingNorm}, norm},
      {"~layers.{l}.attn_norm", {Role::kAttentionNorm}, norm},
      {"~layers.{l}.attn.Wqkv", {Role::kQuery, Role::kKey, Role::kValue}, attention},
      {"~layers.{l}.attn.Wo", {Role::kOutput}, attention},
      {"~layers.{l}.mlp_norm", {Role::kFeedForwardNorm}, norm},
      {"~layers.{l}.mlp.Wi", {Role::kGate, Role::kUp}, inner},
      {"~layers.{l}.mlp.Wo", {Role::kDown}, inner},
      {"~final_norm", {Role::kFinalNorm}, norm},
  };
  plan.heads = {read_head(plan.design, config, norm)};
  plan.buffers = {{".rotary_emb.inv_freq"}};
  return plan;
}

/// ModernBertPreTrainedModel._init_weights: everything is cut off, and what goes to the residual or
/// to the vocabulary scaled by the depth. The row of the padding token is one like others.
std::vector<StartRule> modernbert_starts(const FamilyConfig& config, const Design& design) {
  constexpr double kLeastCutoff = 0.1;  // values are drawn until they lie below it
  StartValue in = StartValue::normal(start_range(config));
  in.kind = StartValue::Kind::kTruncatedNormal;
  in.cutoff = config.positive("initializer_cutoff_factor", 2);
  if (in.cutoff < kLeastCutoff) config.refuse("initializer_cutoff_factor", "at least 0.1");
  StartValue out = in;
  out.deviation /= std::sqrt(2 * static_cast<double>(design.num_hidden_layers));
  return {{Role::kWordTable, in}, {Role::kQuery, in}, {Role::kGate, in},
          {Role::kOutput, out},   {Role::kDown, out}, {Role::kHeadTransform, out},
          {Role::kDecoder, out}};
}

const Family kFamily{
    .name = "modernbert",
    .model_types = {"modernbert"},
    .classes = {"ModernBert"},
    .heads = {{HeadKind::kMasked, "ForMaskedLM"}},
    .loads = "ModernBERT, with its masked-LM head or without",
    .plan = make_plan,
    .starts = modernbert_starts,
    .files =
        {.wide_configs =
             {R"("norm_bias": true, "attention_bias": true, "mlp_bias": true, "classifier_bias": true)"}},
};
const FamilyRegistration kRegistration{kFamily};

}  // namespace
}  // namespace masque::model
