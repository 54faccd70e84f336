#include "model/decoder_family.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "model/encoder_family.hpp"
#include "tensor/convert.hpp"

namespace masque::model {

namespace {

void read_decoder_heads(Design& design, const FamilyConfig& config,
                        const DecoderDefaults& defaults) {
  design.num_attention_heads = config.size({"num_attention_heads"}, defaults.num_attention_heads);
  const bool own_size =
      defaults.reads_head_dim && (defaults.head_dim > 0 || config.has("head_dim"));
  if (!own_size) split_heads(design, config, "hidden_size", "num_attention_heads");
  const Index shared = defaults.num_key_value_heads > 0 && !config.is_null("num_key_value_heads")
                           ? defaults.num_key_value_heads
                           : design.num_attention_heads;
  design.num_key_value_heads = config.size({"num_key_value_heads"}, shared);
  if (design.num_attention_heads % design.num_key_value_heads != 0)
    config.refuse("num_key_value_heads", "a divisor of num_attention_heads");
  if (own_size) design.head_size = config.size({"head_dim"}, defaults.head_dim);
  design.attention_scale = 1 / std::sqrt(static_cast<double>(design.head_size));
}

}  // namespace

Design decoder_design(const FamilyConfig& config, std::string_view family,
                      const DecoderDefaults& defaults) {
  Design design;
  design.family = family;
  design.model_type = config.raw().model_type();
  design.vocab_size = config.size({"vocab_size"}, defaults.vocab_size);
  design.hidden_size = config.size({"hidden_size"}, defaults.hidden_size);
  design.embedding_size = design.hidden_size;
  design.num_hidden_layers = config.layers({"num_hidden_layers"}, defaults.num_hidden_layers);
  read_decoder_heads(design, config, defaults);
  design.intermediate_size = config.size({"intermediate_size"}, defaults.intermediate_size);
  design.max_position_embeddings =
      config.size({"max_position_embeddings"}, defaults.max_position_embeddings);
  const bool own_pad = config.has("pad_token_id") || config.is_null("pad_token_id");
  design.pad_token_id = own_pad ? config.optional_count("pad_token_id") : defaults.pad_token_id;
  design.norm_placement = NormPlacement::kPre;
  design.norm.kind = defaults.norm;
  design.norm.epsilon = defaults.norm_epsilon;
  if (!defaults.norm_epsilon_name.empty())
    design.norm.epsilon = config.positive(defaults.norm_epsilon_name, defaults.norm_epsilon);
  design.final_norm = true;
  design.activation = config.activation(defaults.activation, defaults.hidden_act);
  design.gated = defaults.gated;
  design.mask = DefaultMask::kCausal;
  design.position = PositionType::kRotary;
  fill_layers(design);
  return design;
}

void set_angles(Design& design, const FamilyConfig& config, const RotaryDefaults& defaults) {
  const RotaryDesign rotary =
      read_rotary(config, defaults, design.head_size, design.max_position_embeddings, design.notes);
  for (LayerDesign& layer : design.layers) layer.rotary = rotary;
}

RotaryDefaults whole_heads(double theta) {
  return {.theta = theta, .share_name = "partial_rotary_factor", .fixed_share = true};
}

std::vector<bool> all_layers(const Design& design, bool local) {
  std::vector<bool> layers;
  layers.resize(static_cast<std::size_t>(design.num_hidden_layers), local);
  return layers;
}

std::vector<bool> read_local_layers(const Design& design, const FamilyConfig& config,
                                    std::vector<bool> fallback) {
  if (!config.has("layer_types")) return fallback;
  const auto types = config.raw().strings("layer_types");
  std::vector<bool> local = all_layers(design, false);
  for (std::size_t l = 0; l < local.size(); ++l) {
    if (types->size() != local.size() ||
        ((*types)[l] != kFullAttention && (*types)[l] != kSlidingAttention)) {
      config.refuse("layer_types", fmt::format("{} items, each {} or {}", local.size(),
                                               kFullAttention, kSlidingAttention));
    }
    local[l] = (*types)[l] == kSlidingAttention;
  }
  return local;
}

std::optional<Index> read_sliding_window(const FamilyConfig& config,
                                         std::optional<Index> fallback) {
  if (config.has("sliding_window")) return config.size({"sliding_window"}, 1);
  return config.is_null("sliding_window") ? std::nullopt : fallback;
}

void set_windows(Design& design, const FamilyConfig& config, const std::vector<bool>& local,
                 std::optional<Index> window) {
  for (std::size_t l = 0; l < local.size(); ++l) {
    if (!local[l]) continue;
    if (!window)
      config.refuse("sliding_window",
                    fmt::format("a number: layer {} is {}", l, kSlidingAttention));
    // Of as many tokens the last one is the query's own.
    design.layers[l].window = *window - 1;
  }
}

DecoderParts parts_by_config(const FamilyConfig& config) {
  DecoderParts parts;
  if (config.flag("attention_bias", false)) parts.query_key_value = parts.output = Parts::kBoth;
  if (config.flag("mlp_bias", false)) parts.inner = Parts::kBoth;
  return parts;
}

std::vector<TensorRow> decoder_rows(const std::vector<TensorRow>& layers, Parts norm,
                                    std::string_view norm_name) {
  std::vector<TensorRow> rows = {{"~embed_tokens", {Role::kWordTable}, Parts::kWeight}};
  for (TensorRow row : layers) {
    row.name = "~layers.{l}." + row.name;
    rows.push_back(std::move(row));
  }
  rows.push_back({fmt::format("~{}", norm_name), {Role::kFinalNorm}, norm});
  return rows;
}

std::vector<TensorRow> attention_rows(const DecoderParts& parts) {
  return {{"self_attn.q_proj", {Role::kQuery}, parts.query_key_value},
          {"self_attn.k_proj", {Role::kKey}, parts.query_key_value},
          {"self_attn.v_proj", {Role::kValue}, parts.query_key_value},
          {"self_attn.o_proj", {Role::kOutput}, parts.output}};
}

std::vector<TensorRow> gated_rows(const DecoderParts& parts) {
  return {{"mlp.gate_proj", {Role::kGate}, parts.inner},
          {"mlp.up_proj", {Role::kUp}, parts.inner},
          {"mlp.down_proj", {Role::kDown}, parts.inner}};
}

void set_experts(Design& design, const FamilyConfig& config, const std::vector<bool>& sparse,
                 Names count_names, Index count, Index per_token, Index intermediate_size) {
  // As many as their tensors' names are listed for before a file is looked at.
  constexpr Index kMost = 4096;
  ExpertsDesign experts;
  experts.count = config.size(count_names, count);
  if (experts.count > kMost) {
    config.refuse(*std::ranges::find_if(count_names, [&](auto name) { return config.has(name); }),
                  fmt::format("at most {}", kMost));
  }
  experts.per_token = config.size({"num_experts_per_tok"}, per_token);
  if (experts.per_token > experts.count)
    config.refuse("num_experts_per_tok", fmt::format("at most {}", experts.count));
  experts.intermediate_size = intermediate_size;
  for (std::size_t l = 0; l < sparse.size(); ++l) design.layers[l].experts = sparse[l];
  if (std::ranges::find(sparse, true) != sparse.end()) design.experts = experts;
}

std::vector<TensorRow> expert_rows(const Design& design, std::string_view mixture,
                                   const ExpertNames& names) {
  if (!design.experts) return {};
  std::vector<TensorRow> rows = {
      {fmt::format("{}.gate", mixture), {Role::kRouter}, Parts::kWeight}};
  for (Index e = 0; e < design.experts->count; ++e) {
    const std::string expert = fmt::format("{}.experts.{}.", mixture, e);
    for (const auto& [role, name] : {std::pair(Role::kExpertGate, names.gate),
                                     {Role::kExpertUp, names.up},
                                     {Role::kExpertDown, names.down}}) {
      TensorRow row{expert + std::string(name), {role}, Parts::kWeight};
      row.part = e;
      rows.push_back(std::move(row));
    }
  }
  return rows;
}

std::vector<TensorRow> llama_rows(const DecoderParts& parts) {
  std::vector<TensorRow> layers = {{"input_layernorm", {Role::kAttentionNorm}, parts.norm}};
  append(layers, attention_rows(parts));
  layers.push_back({"post_attention_layernorm", {Role::kFeedForwardNorm}, parts.norm});
  append(layers, gated_rows(parts));
  return decoder_rows(layers, parts.norm);
}

ModelPlan decoder_plan(Design design, const FamilyConfig& config, std::vector<TensorRow> rows,
                       bool tied) {
  ModelPlan plan;
  plan.prefix = "model.";
  plan.design = std::move(design);
  plan.rows = std::move(rows);
  add_lm_head(plan, config, tied);
  plan.buffers = {{".rotary_emb.inv_freq"}};
  return plan;
}

void add_lm_head(ModelPlan& plan, const FamilyConfig& config, bool tied) {
  HeadDesign head = vocabulary_head(plan.design, config);
  head.tied = config.flag("tie_word_embeddings", tied);
  const char* what = head.kind == HeadKind::kCausal ? "causal-LM head" : "masked-LM head";
  plan.heads = {bare_head(head, config, what, "lm_head.weight")};
}

double root_of_width(const Design& design, const FamilyConfig& config) {
  const double root = std::sqrt(static_cast<double>(design.hidden_size));
  const std::string type =
      config.raw().string(config.has("dtype") ? "dtype" : "torch_dtype").value_or("float32");
  const DType dtype = type == "bfloat16"  ? DType::kBF16
                      : type == "float16" ? DType::kF16
                      : type == "float64" ? DType::kF64
                                          : DType::kF32;
  std::array<std::byte, sizeof(double)> bytes{};
  const std::size_t size = dtype_bits(dtype) / 8;
  double rounded = 0;
  from_double(dtype, {&root, 1}, std::span(bytes).first(size));
  to_double(dtype, std::span(bytes).first(size), {&rounded, 1});
  return rounded;
}

}  // namespace masque::model
