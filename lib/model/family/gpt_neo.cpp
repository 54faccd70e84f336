// GPT-Neo: GPT-2's layers, every other one with a window, and scores that are not scaled. Black
// 2021, doi:10.5281/zenodo.5297715.
#include <vector>

#include "model/decoder_family.hpp"
#include "model/encoder_family.hpp"

namespace masque::model {
namespace {

/// Whether each layer reads a window alone: attention_types lists kinds of layers with how often
/// they repeat, attention_layers each layer.
std::vector<bool> read_local(const Design& design, const FamilyConfig& config) {
  std::vector<bool> local = all_layers(design, false);
  const auto set = [&](std::size_t layer, std::string_view kind, std::string_view key) {
    if (kind != "global" && kind != "local") config.refuse(key, "items global or local");
    local[layer] = kind == "local";
  };
  constexpr std::string_view kTypes = "attention_types";
  const bool has_types = config.has(kTypes);
  if (config.has("attention_layers")) {
    const auto layers = config.raw().strings("attention_layers");
    if (layers->size() < local.size()) config.refuse("attention_layers", "an item for each layer");
    for (std::size_t l = 0; l < local.size(); ++l) set(l, (*layers)[l], "attention_layers");
    return local;
  }
  if (!has_types) {
    for (std::size_t l = 0; l < local.size(); ++l) local[l] = l % 2 == 1;
    return local;
  }
  const JsonValue root = parse_json_file(config.raw().text(), config.raw().path());
  std::size_t layer = 0;
  // Each item is a list of kinds, and how often it repeats.
  for (const JsonValue& item : root.find(kTypes)->items) {
    const auto times = item.items.size() == 2 ? item.items[1].integer() : std::nullopt;
    if (!times || item.items[0].items.empty())
      config.refuse(kTypes, "lists of kinds of layers with how often each repeats");
    for (std::uint64_t i = 0; i < *times && layer <= local.size(); ++i) {
      for (const JsonValue& kind : item.items[0].items) {
        if (layer == local.size()) config.refuse(kTypes, "as many layers as num_layers");
        set(layer++, kind.text, kTypes);
      }
    }
  }
  if (layer != local.size()) config.refuse(kTypes, "as many layers as num_layers");
  return local;
}

Design read_design(const FamilyConfig& config) {
  Design design;
  design.family = "gpt_neo";
  design.model_type = config.raw().model_type();
  design.vocab_size = config.size({"vocab_size"}, 50257);
  design.hidden_size = config.size({"hidden_size"}, 2048);
  design.embedding_size = design.hidden_size;
  design.num_hidden_layers = config.layers({"num_layers", "num_hidden_layers"}, 24);
  design.num_attention_heads = config.size({"num_heads", "num_attention_heads"}, 16);
  design.intermediate_size = config.size({"intermediate_size"}, 4 * design.hidden_size);
  design.max_position_embeddings = config.size({"max_position_embeddings"}, 2048);
  design.pad_token_id = config.optional_count("pad_token_id");
  design.norm_placement = NormPlacement::kPre;
  design.norm.epsilon = config.positive("layer_norm_epsilon", 1e-5);
  design.final_norm = true;
  design.activation = config.activation("activation_function", "gelu_new");
  design.mask = DefaultMask::kCausal;
  split_heads(design, config, "hidden_size", "num_heads");
  design.attention_scale = 1;
  fill_layers(design);
  set_windows(design, config, read_local(design, config), config.size({"window_size"}, 256));
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
      {"~h.{l}.attn.attention.q_proj", {Role::kQuery}, Parts::kWeight},
      {"~h.{l}.attn.attention.k_proj", {Role::kKey}, Parts::kWeight},
      {"~h.{l}.attn.attention.v_proj", {Role::kValue}, Parts::kWeight},
      {"~h.{l}.attn.attention.out_proj", {Role::kOutput}},
      {"~h.{l}.ln_2", {Role::kFeedForwardNorm}},
      {"~h.{l}.mlp.c_fc", {Role::kUp}},
      {"~h.{l}.mlp.c_proj", {Role::kDown}},
      {"~ln_f", {Role::kFinalNorm}},
  };
  add_lm_head(plan, config, true);
  plan.buffers = {{".attn.attention.bias"}, {".attn.attention.masked_bias"}};
  return plan;
}

const Family kFamily{
    .name = "gpt_neo",
    .model_types = {"gpt_neo"},
    .classes = {"GPTNeo"},
    .heads = {{HeadKind::kCausal, "ForCausalLM"}},
    .loads = "GPT-Neo, with the causal-LM head or without",
    .plan = make_plan,
    .starts = unpadded_starts,
};
const FamilyRegistration kRegistration{kFamily};

}  // namespace
}  // namespace masque::model
