#include "store/gguf/gguf_architecture.hpp"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "base/string/comma_list.hpp"

namespace masque::store {

namespace {

// Of every decoder with Llama's names.
#define MASQUE_GGUF_ENDS                                                                           \
  {"token_embd.weight", "model.embed_tokens.weight"}, {"output_norm.weight", "model.norm.weight"}, \
  {                                                                                                \
    "output.weight", "lm_head.weight"                                                              \
  }
#define MASQUE_GGUF_ATTENTION(QUERY, KEY)                                         \
  {"blk.{l}.attn_q.weight", "model.layers.{l}.self_attn.q_proj.weight", QUERY},   \
      {"blk.{l}.attn_k.weight", "model.layers.{l}.self_attn.k_proj.weight", KEY}, \
      {"blk.{l}.attn_v.weight", "model.layers.{l}.self_attn.v_proj.weight"},      \
      {"blk.{l}.attn_output.weight", "model.layers.{l}.self_attn.o_proj.weight"}, \
      {"blk.{l}.attn_q.bias", "model.layers.{l}.self_attn.q_proj.bias", QUERY},   \
      {"blk.{l}.attn_k.bias", "model.layers.{l}.self_attn.k_proj.bias", KEY},     \
      {"blk.{l}.attn_v.bias", "model.layers.{l}.self_attn.v_proj.bias"}, {        \
    "blk.{l}.attn_output.bias", "model.layers.{l}.self_attn.o_proj.bias"          \
  }
#define MASQUE_GGUF_GATED                                                 \
  {"blk.{l}.ffn_gate.weight", "model.layers.{l}.mlp.gate_proj.weight"},   \
      {"blk.{l}.ffn_up.weight", "model.layers.{l}.mlp.up_proj.weight"}, { \
    "blk.{l}.ffn_down.weight", "model.layers.{l}.mlp.down_proj.weight"    \
  }
#define MASQUE_GGUF_PRE_NORMS(CHANGE)                                                     \
  {"blk.{l}.attn_norm.weight", "model.layers.{l}.input_layernorm.weight", CHANGE}, {      \
    "blk.{l}.ffn_norm.weight", "model.layers.{l}.post_attention_layernorm.weight", CHANGE \
  }

constexpr GgufTensorName kLlama[] = {
    MASQUE_GGUF_ENDS, MASQUE_GGUF_ATTENTION(GgufChange::kQueryRows, GgufChange::kKeyRows),
    MASQUE_GGUF_GATED, MASQUE_GGUF_PRE_NORMS(GgufChange::kNone)};
constexpr GgufTensorName kQwen[] = {
    MASQUE_GGUF_ENDS,
    MASQUE_GGUF_ATTENTION(GgufChange::kNone, GgufChange::kNone),
    MASQUE_GGUF_GATED,
    MASQUE_GGUF_PRE_NORMS(GgufChange::kNone),
    {"blk.{l}.attn_q_norm.weight", "model.layers.{l}.self_attn.q_norm.weight"},
    {"blk.{l}.attn_k_norm.weight", "model.layers.{l}.self_attn.k_norm.weight"}};
constexpr GgufTensorName kGemma[] = {
    {"token_embd.weight", "model.embed_tokens.weight"},
    {"output_norm.weight", "model.norm.weight", GgufChange::kPlusOne},
    MASQUE_GGUF_ATTENTION(GgufChange::kNone, GgufChange::kNone),
    MASQUE_GGUF_GATED,
    MASQUE_GGUF_PRE_NORMS(GgufChange::kPlusOne)};
constexpr GgufTensorName kLaterGemma[] = {
    {"token_embd.weight", "model.embed_tokens.weight"},
    {"output_norm.weight", "model.norm.weight", GgufChange::kPlusOne},
    MASQUE_GGUF_ATTENTION(GgufChange::kNone, GgufChange::kNone),
    MASQUE_GGUF_GATED,
    {"blk.{l}.attn_q_norm.weight", "model.layers.{l}.self_attn.q_norm.weight",
     GgufChange::kPlusOne},
    {"blk.{l}.attn_k_norm.weight", "model.layers.{l}.self_attn.k_norm.weight",
     GgufChange::kPlusOne},
    {"blk.{l}.attn_norm.weight", "model.layers.{l}.input_layernorm.weight", GgufChange::kPlusOne},
    {"blk.{l}.post_attention_norm.weight", "model.layers.{l}.post_attention_layernorm.weight",
     GgufChange::kPlusOne},
    {"blk.{l}.ffn_norm.weight", "model.layers.{l}.pre_feedforward_layernorm.weight",
     GgufChange::kPlusOne},
    {"blk.{l}.post_ffw_norm.weight", "model.layers.{l}.post_feedforward_layernorm.weight",
     GgufChange::kPlusOne}};
constexpr GgufTensorName kOlmo2[] = {
    MASQUE_GGUF_ENDS,
    MASQUE_GGUF_ATTENTION(GgufChange::kNone, GgufChange::kNone),
    MASQUE_GGUF_GATED,
    {"blk.{l}.attn_q_norm.weight", "model.layers.{l}.self_attn.q_norm.weight"},
    {"blk.{l}.attn_k_norm.weight", "model.layers.{l}.self_attn.k_norm.weight"},
    {"blk.{l}.post_attention_norm.weight", "model.layers.{l}.post_attention_layernorm.weight"},
    {"blk.{l}.post_ffw_norm.weight", "model.layers.{l}.post_feedforward_layernorm.weight"}};
constexpr GgufTensorName kPhi3[] = {
    MASQUE_GGUF_ENDS,
    MASQUE_GGUF_PRE_NORMS(GgufChange::kNone),
    {"blk.{l}.attn_qkv.weight", "model.layers.{l}.self_attn.qkv_proj.weight"},
    {"blk.{l}.attn_output.weight", "model.layers.{l}.self_attn.o_proj.weight"},
    {"blk.{l}.ffn_up.weight", "model.layers.{l}.mlp.gate_up_proj.weight"},
    {"blk.{l}.ffn_down.weight", "model.layers.{l}.mlp.down_proj.weight"}};
constexpr GgufTensorName kStarcoder2[] = {
    MASQUE_GGUF_ENDS,
    {"output_norm.bias", "model.norm.bias"},
    MASQUE_GGUF_ATTENTION(GgufChange::kNone, GgufChange::kNone),
    MASQUE_GGUF_PRE_NORMS(GgufChange::kNone),
    {"blk.{l}.attn_norm.bias", "model.layers.{l}.input_layernorm.bias"},
    {"blk.{l}.ffn_norm.bias", "model.layers.{l}.post_attention_layernorm.bias"},
    {"blk.{l}.ffn_up.weight", "model.layers.{l}.mlp.c_fc.weight"},
    {"blk.{l}.ffn_up.bias", "model.layers.{l}.mlp.c_fc.bias"},
    {"blk.{l}.ffn_down.weight", "model.layers.{l}.mlp.c_proj.weight"},
    {"blk.{l}.ffn_down.bias", "model.layers.{l}.mlp.c_proj.bias"}};
constexpr GgufTensorName kGpt2[] = {
    {"token_embd.weight", "transformer.wte.weight"},
    {"position_embd.weight", "transformer.wpe.weight"},
    {"output_norm.weight", "transformer.ln_f.weight"},
    {"output_norm.bias", "transformer.ln_f.bias"},
    {"output.weight", "lm_head.weight"},
    {"blk.{l}.attn_norm.weight", "transformer.h.{l}.ln_1.weight"},
    {"blk.{l}.attn_norm.bias", "transformer.h.{l}.ln_1.bias"},
    {"blk.{l}.attn_qkv.weight", "transformer.h.{l}.attn.c_attn.weight"},
    {"blk.{l}.attn_qkv.bias", "transformer.h.{l}.attn.c_attn.bias"},
    {"blk.{l}.attn_output.weight", "transformer.h.{l}.attn.c_proj.weight"},
    {"blk.{l}.attn_output.bias", "transformer.h.{l}.attn.c_proj.bias"},
    {"blk.{l}.ffn_norm.weight", "transformer.h.{l}.ln_2.weight"},
    {"blk.{l}.ffn_norm.bias", "transformer.h.{l}.ln_2.bias"},
    {"blk.{l}.ffn_up.weight", "transformer.h.{l}.mlp.c_fc.weight"},
    {"blk.{l}.ffn_up.bias", "transformer.h.{l}.mlp.c_fc.bias"},
    {"blk.{l}.ffn_down.weight", "transformer.h.{l}.mlp.c_proj.weight"},
    {"blk.{l}.ffn_down.bias", "transformer.h.{l}.mlp.c_proj.bias"}};
#undef MASQUE_GGUF_ENDS
#undef MASQUE_GGUF_ATTENTION
#undef MASQUE_GGUF_GATED
#undef MASQUE_GGUF_PRE_NORMS

constexpr GgufConfigKey kLlamaKeys[] = {{"attention.sliding_window", "sliding_window"}};
constexpr GgufConfigKey kGemmaKeys[] = {{"attention.sliding_window", "sliding_window"},
                                        {"attn_logit_softcapping", "attn_logit_softcapping"},
                                        {"final_logit_softcapping", "final_logit_softcapping"}};
constexpr GgufConfigKey kPhi3Keys[] = {{"attention.sliding_window", "sliding_window"}};
constexpr GgufConfigKey kStarcoder2Keys[] = {{"attention.layer_norm_epsilon", "norm_epsilon"}};
constexpr GgufConfigKey kGpt2Keys[] = {{"attention.layer_norm_epsilon", "layer_norm_epsilon"}};

constexpr GgufConfigKey kSizes[] = {
    {"context_length", "max_position_embeddings"},
    {"embedding_length", "hidden_size"},
    {"block_count", "num_hidden_layers"},
    {"feed_forward_length", "intermediate_size"},
    {"attention.head_count", "num_attention_heads"},
    {"attention.head_count_kv", "num_key_value_heads"},
    {"attention.layer_norm_rms_epsilon", "rms_norm_eps"},
    {"attention.key_length", "head_dim"},
    {"rope.freq_base", "rope_theta"},
    {"vocab_size", ""},  // the table says it
};
constexpr GgufConfigKey kGpt2Sizes[] = {
    {"context_length", "n_positions"},
    {"embedding_length", "n_embd"},
    {"block_count", "n_layer"},
    {"feed_forward_length", "n_inner"},
    {"attention.head_count", "n_head"},
    {"attention.head_count_kv", ""},
    {"vocab_size", ""},
};

constexpr GgufArchitecture kArchitectures[] = {
    {"gemma", "gemma", "GemmaForCausalLM", kGemma, kSizes, {}, "gelu_pytorch_tanh", true},
    {"gemma2", "gemma2", "Gemma2ForCausalLM", kLaterGemma, kSizes, kGemmaKeys, "", true},
    {"gemma3", "gemma3_text", "Gemma3ForCausalLM", kLaterGemma, kSizes, kGemmaKeys, "", true},
    {"gpt2", "gpt2", "GPT2LMHeadModel", kGpt2, kGpt2Sizes, kGpt2Keys, "", true, true},
    {"llama", "llama", "LlamaForCausalLM", kLlama, kSizes, kLlamaKeys},
    {"olmo2", "olmo2", "Olmo2ForCausalLM", kOlmo2, kSizes, {}},
    {"phi3", "phi3", "Phi3ForCausalLM", kPhi3, kSizes, kPhi3Keys},
    {"qwen2", "qwen2", "Qwen2ForCausalLM", kQwen, kSizes, {}},
    {"qwen3", "qwen3", "Qwen3ForCausalLM", kQwen, kSizes, {}},
    {"starcoder2", "starcoder2", "Starcoder2ForCausalLM", kStarcoder2, kSizes, kStarcoder2Keys, "",
     true},
};

constexpr std::string_view kBlock = "blk.";

}  // namespace

std::span<const GgufArchitecture> gguf_architecture_table() { return kArchitectures; }

const GgufArchitecture* find_gguf_architecture(std::string_view name) {
  const auto* const found = std::ranges::find(kArchitectures, name, &GgufArchitecture::name);
  return found == std::end(kArchitectures) ? nullptr : found;
}

std::string gguf_with_layer(std::string_view pattern, std::string_view layer) {
  const std::size_t at = pattern.find("{l}");
  if (at == std::string_view::npos) return std::string(pattern);
  return fmt::format("{}{}{}", pattern.substr(0, at), layer, pattern.substr(at + 3));
}

std::string_view gguf_layer_of(std::string_view name) {
  if (!name.starts_with(kBlock)) return {};
  name.remove_prefix(kBlock.size());
  return name.substr(0, name.find('.'));
}

std::string gguf_architectures() {
  std::vector<std::string_view> names;
  for (const GgufArchitecture& architecture : kArchitectures) names.push_back(architecture.name);
  return or_list(names);
}

}  // namespace masque::store
