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
#define MASQUE_GGUF_EXPERTS(MIXTURE, GATE, UP, DOWN)                                              \
  {"blk.{l}.ffn_gate_inp.weight", "model.layers.{l}." MIXTURE ".gate.weight"},                    \
      {"blk.{l}.ffn_gate_exps.weight",                                                            \
       "model.layers.{l}." MIXTURE ".experts.{e}." GATE ".weight"},                               \
      {"blk.{l}.ffn_up_exps.weight", "model.layers.{l}." MIXTURE ".experts.{e}." UP ".weight"}, { \
    "blk.{l}.ffn_down_exps.weight", "model.layers.{l}." MIXTURE ".experts.{e}." DOWN ".weight"    \
  }
#define MASQUE_GGUF_QUERY_KEY_NORMS                                             \
  {"blk.{l}.attn_q_norm.weight", "model.layers.{l}.self_attn.q_norm.weight"}, { \
    "blk.{l}.attn_k_norm.weight", "model.layers.{l}.self_attn.k_norm.weight"    \
  }
#define MASQUE_GGUF_PRE_NORMS(CHANGE)                                                     \
  {"blk.{l}.attn_norm.weight", "model.layers.{l}.input_layernorm.weight", CHANGE}, {      \
    "blk.{l}.ffn_norm.weight", "model.layers.{l}.post_attention_layernorm.weight", CHANGE \
  }

constexpr GgufTensorName kLlama[] = {
    MASQUE_GGUF_ENDS, MASQUE_GGUF_ATTENTION(GgufChange::kQueryRows, GgufChange::kKeyRows),
    MASQUE_GGUF_GATED, MASQUE_GGUF_PRE_NORMS(GgufChange::kNone)};
constexpr GgufTensorName kMixtral[] = {
    MASQUE_GGUF_ENDS, MASQUE_GGUF_ATTENTION(GgufChange::kQueryRows, GgufChange::kKeyRows),
    MASQUE_GGUF_EXPERTS("block_sparse_moe", "w1", "w3", "w2"),
    MASQUE_GGUF_PRE_NORMS(GgufChange::kNone)};
constexpr GgufTensorName kQwen[] = {
    MASQUE_GGUF_ENDS, MASQUE_GGUF_ATTENTION(GgufChange::kNone, GgufChange::kNone),
    MASQUE_GGUF_GATED, MASQUE_GGUF_PRE_NORMS(GgufChange::kNone), MASQUE_GGUF_QUERY_KEY_NORMS};
// Qwen's and OLMoE's mixtures.
constexpr GgufTensorName kMixture[] = {
    MASQUE_GGUF_ENDS,
    MASQUE_GGUF_ATTENTION(GgufChange::kNone, GgufChange::kNone),
    MASQUE_GGUF_EXPERTS("mlp", "gate_proj", "up_proj", "down_proj"),
    {"blk.{l}.ffn_gate_inp_shexp.weight", "model.layers.{l}.mlp.shared_expert_gate.weight",
     GgufChange::kVector},
    {"blk.{l}.ffn_gate_shexp.weight", "model.layers.{l}.mlp.shared_expert.gate_proj.weight"},
    {"blk.{l}.ffn_up_shexp.weight", "model.layers.{l}.mlp.shared_expert.up_proj.weight"},
    {"blk.{l}.ffn_down_shexp.weight", "model.layers.{l}.mlp.shared_expert.down_proj.weight"},
    MASQUE_GGUF_PRE_NORMS(GgufChange::kNone),
    MASQUE_GGUF_QUERY_KEY_NORMS};
constexpr GgufTensorName kGptOss[] = {
    MASQUE_GGUF_ENDS,
    MASQUE_GGUF_ATTENTION(GgufChange::kNone, GgufChange::kNone),
    {"blk.{l}.attn_sinks.weight", "model.layers.{l}.self_attn.sinks"},
    {"blk.{l}.attn_norm.weight", "model.layers.{l}.input_layernorm.weight"},
    {"blk.{l}.post_attention_norm.weight", "model.layers.{l}.post_attention_layernorm.weight"},
    {"blk.{l}.ffn_gate_inp.weight", "model.layers.{l}.mlp.router.weight"},
    {"blk.{l}.ffn_gate_inp.bias", "model.layers.{l}.mlp.router.bias"},
    {"blk.{l}.ffn_gate_exps.weight", "model.layers.{l}.mlp.experts.gate_up_proj",
     GgufChange::kTurnedOfTwo},
    {"blk.{l}.ffn_up_exps.weight", "model.layers.{l}.mlp.experts.gate_up_proj",
     GgufChange::kTurnedOfTwo},
    {"blk.{l}.ffn_gate_exps.bias", "model.layers.{l}.mlp.experts.gate_up_proj_bias",
     GgufChange::kTurnedOfTwo},
    {"blk.{l}.ffn_up_exps.bias", "model.layers.{l}.mlp.experts.gate_up_proj_bias",
     GgufChange::kTurnedOfTwo},
    {"blk.{l}.ffn_down_exps.weight", "model.layers.{l}.mlp.experts.down_proj", GgufChange::kTurned},
    {"blk.{l}.ffn_down_exps.bias", "model.layers.{l}.mlp.experts.down_proj_bias"}};
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
    MASQUE_GGUF_QUERY_KEY_NORMS,
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
#define MASQUE_GGUF_BOTH(OWN, NAME) \
  {OWN ".weight", NAME ".weight"}, { OWN ".bias", NAME ".bias" }
constexpr GgufTensorName kBert[] = {
    {"token_embd.weight", "embeddings.word_embeddings.weight"},
    {"position_embd.weight", "embeddings.position_embeddings.weight"},
    {"token_types.weight", "embeddings.token_type_embeddings.weight"},
    MASQUE_GGUF_BOTH("token_embd_norm", "embeddings.LayerNorm"),
    MASQUE_GGUF_BOTH("blk.{l}.attn_q", "encoder.layer.{l}.attention.self.query"),
    MASQUE_GGUF_BOTH("blk.{l}.attn_k", "encoder.layer.{l}.attention.self.key"),
    MASQUE_GGUF_BOTH("blk.{l}.attn_v", "encoder.layer.{l}.attention.self.value"),
    MASQUE_GGUF_BOTH("blk.{l}.attn_output", "encoder.layer.{l}.attention.output.dense"),
    MASQUE_GGUF_BOTH("blk.{l}.attn_output_norm", "encoder.layer.{l}.attention.output.LayerNorm"),
    MASQUE_GGUF_BOTH("blk.{l}.ffn_up", "encoder.layer.{l}.intermediate.dense"),
    MASQUE_GGUF_BOTH("blk.{l}.ffn_down", "encoder.layer.{l}.output.dense"),
    MASQUE_GGUF_BOTH("blk.{l}.layer_output_norm", "encoder.layer.{l}.output.LayerNorm")};
#define MASQUE_GGUF_T5_ATTENTION(OWN, NAME)                               \
  {OWN "q.weight", NAME ".q.weight"}, {OWN "k.weight", NAME ".k.weight"}, \
      {OWN "v.weight", NAME ".v.weight"}, {                               \
    OWN "o.weight", NAME ".o.weight"                                      \
  }
#define MASQUE_GGUF_T5_STACK(OWN, NAME, FORWARD)                                               \
  MASQUE_GGUF_T5_ATTENTION(OWN ".blk.{l}.attn_", NAME ".block.{l}.layer.0.SelfAttention"),     \
      {OWN ".blk.{l}.attn_rel_b.weight",                                                       \
       NAME ".block.{l}.layer.0.SelfAttention.relative_attention_bias.weight"},                \
      {OWN ".blk.{l}.attn_norm.weight", NAME ".block.{l}.layer.0.layer_norm.weight"},          \
      {OWN ".blk.{l}.ffn_norm.weight", NAME ".block.{l}.layer." FORWARD ".layer_norm.weight"}, \
      {OWN ".blk.{l}.ffn_gate.weight",                                                         \
       NAME ".block.{l}.layer." FORWARD ".DenseReluDense.wi_0.weight"},                        \
      {OWN ".blk.{l}.ffn_up.weight",                                                           \
       NAME ".block.{l}.layer." FORWARD ".DenseReluDense.wi{g}.weight"},                       \
      {OWN ".blk.{l}.ffn_down.weight",                                                         \
       NAME ".block.{l}.layer." FORWARD ".DenseReluDense.wo.weight"},                          \
  {                                                                                            \
    OWN ".output_norm.weight", NAME ".final_layer_norm.weight"                                 \
  }
constexpr GgufTensorName kT5Encoder[] = {{"token_embd.weight", "shared.weight"},
                                         MASQUE_GGUF_T5_STACK("enc", "encoder", "1")};
constexpr GgufTensorName kT5[] = {
    {"token_embd.weight", "shared.weight"},
    {"output.weight", "lm_head.weight"},
    MASQUE_GGUF_T5_STACK("enc", "encoder", "1"),
    MASQUE_GGUF_T5_STACK("dec", "decoder", "2"),
    MASQUE_GGUF_T5_ATTENTION("dec.blk.{l}.cross_attn_",
                             "decoder.block.{l}.layer.1.EncDecAttention"),
    {"dec.blk.{l}.cross_attn_norm.weight", "decoder.block.{l}.layer.1.layer_norm.weight"}};
#undef MASQUE_GGUF_T5_ATTENTION
#undef MASQUE_GGUF_T5_STACK
constexpr GgufTensorName kNomicBert[] = {
    {"token_embd.weight", "embeddings.word_embeddings.weight"},
    {"token_types.weight", "embeddings.token_type_embeddings.weight"},
    MASQUE_GGUF_BOTH("token_embd_norm", "emb_ln"),
    {"blk.{l}.attn_qkv.weight", "encoder.layers.{l}.attn.Wqkv.weight"},
    {"blk.{l}.attn_output.weight", "encoder.layers.{l}.attn.out_proj.weight"},
    MASQUE_GGUF_BOTH("blk.{l}.attn_output_norm", "encoder.layers.{l}.norm1"),
    {"blk.{l}.ffn_up.weight", "encoder.layers.{l}.mlp.fc11.weight"},
    {"blk.{l}.ffn_gate.weight", "encoder.layers.{l}.mlp.fc12.weight"},
    {"blk.{l}.ffn_down.weight", "encoder.layers.{l}.mlp.fc2.weight"},
    MASQUE_GGUF_BOTH("blk.{l}.layer_output_norm", "encoder.layers.{l}.norm2")};
#undef MASQUE_GGUF_BOTH
#undef MASQUE_GGUF_ENDS
#undef MASQUE_GGUF_ATTENTION
#undef MASQUE_GGUF_GATED
#undef MASQUE_GGUF_EXPERTS
#undef MASQUE_GGUF_QUERY_KEY_NORMS
#undef MASQUE_GGUF_PRE_NORMS

constexpr GgufConfigKey kLlamaKeys[] = {{"attention.sliding_window", "sliding_window"}};
constexpr GgufConfigKey kGemmaKeys[] = {{"attention.sliding_window", "sliding_window"},
                                        {"attn_logit_softcapping", "attn_logit_softcapping"},
                                        {"final_logit_softcapping", "final_logit_softcapping"}};
constexpr GgufConfigKey kPhi3Keys[] = {{"attention.sliding_window", "sliding_window"}};
constexpr GgufConfigKey kStarcoder2Keys[] = {{"attention.layer_norm_epsilon", "norm_epsilon"}};
constexpr GgufConfigKey kGpt2Keys[] = {{"attention.layer_norm_epsilon", "layer_norm_epsilon"}};

constexpr GgufConfigKey kMixtralKeys[] = {{"expert_count", "num_local_experts"},
                                          {"expert_used_count", "num_experts_per_tok"}};
constexpr GgufConfigKey kOlmoeKeys[] = {{"expert_count", "num_experts"},
                                        {"expert_used_count", "num_experts_per_tok"}};
constexpr GgufConfigKey kQwenMixtureKeys[] = {
    {"expert_count", "num_experts"},
    {"expert_used_count", "num_experts_per_tok"},
    {"expert_feed_forward_length", "moe_intermediate_size"},
    {"expert_shared_feed_forward_length", "shared_expert_intermediate_size"}};
constexpr GgufConfigKey kGptOssKeys[] = {{"attention.sliding_window", "sliding_window"},
                                         {"expert_count", "num_local_experts"},
                                         {"expert_used_count", "num_experts_per_tok"}};

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
constexpr GgufConfigKey kEncoderSizes[] = {
    {"context_length", "max_position_embeddings"},
    {"embedding_length", "hidden_size"},
    {"block_count", "num_hidden_layers"},
    {"feed_forward_length", "intermediate_size"},
    {"attention.head_count", "num_attention_heads"},
    {"attention.layer_norm_epsilon", "layer_norm_eps"},
    {"vocab_size", ""},
    {"pooling_type", ""},  // how states become one vector, after the last of them
};
// Its norms have no means: attention.layer_norm_epsilon is of no use.
constexpr GgufConfigKey kT5Sizes[] = {
    {"context_length", "n_positions"},
    {"embedding_length", "d_model"},
    {"block_count", "num_layers"},
    {"decoder_block_count", "num_decoder_layers"},
    {"feed_forward_length", "d_ff"},
    {"attention.head_count", "num_heads"},
    {"attention.key_length", "d_kv"},
    {"attention.layer_norm_epsilon", ""},
    {"attention.layer_norm_rms_epsilon", "layer_norm_epsilon"},
    {"attention.relative_buckets_count", "relative_attention_num_buckets"},
    {"decoder_start_token_id", "decoder_start_token_id"},
    {"vocab_size", ""},
};
constexpr GgufConfigKey kNomicBertKeys[] = {{"rope.freq_base", "rope_theta"}};
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
    {.name = "bert",
     .model_type = "bert",
     .class_name = "BertModel",
     .tensors = kBert,
     .sizes = kEncoderSizes,
     .encoder = true},
    {.name = "gemma",
     .model_type = "gemma",
     .class_name = "GemmaForCausalLM",
     .tensors = kGemma,
     .sizes = kSizes,
     .fixed = R"("hidden_activation": "gelu_pytorch_tanh")",
     .tied = true,
     .says_head_size = true},
    {.name = "gemma2",
     .model_type = "gemma2",
     .class_name = "Gemma2ForCausalLM",
     .tensors = kLaterGemma,
     .sizes = kSizes,
     .keys = kGemmaKeys,
     .tied = true,
     .says_head_size = true},
    {.name = "gemma3",
     .model_type = "gemma3_text",
     .class_name = "Gemma3ForCausalLM",
     .tensors = kLaterGemma,
     .sizes = kSizes,
     .keys = kGemmaKeys,
     .tied = true,
     .says_head_size = true,
     .usual_angle_base = 1e6},
    {.name = "gpt-oss",
     .model_type = "gpt_oss",
     .class_name = "GptOssForCausalLM",
     .tensors = kGptOss,
     .sizes = kSizes,
     .keys = kGptOssKeys,
     .fixed_angles = R"("truncate": false)",
     .experts = true,
     .says_head_size = true,
     .says_expert_size = true,
     .usual_angle_base = 150000},
    {.name = "gpt2",
     .model_type = "gpt2",
     .class_name = "GPT2LMHeadModel",
     .tensors = kGpt2,
     .sizes = kGpt2Sizes,
     .keys = kGpt2Keys,
     .tied = true,
     .transposes = true},
    {.name = "llama",
     .model_type = "llama",
     .class_name = "LlamaForCausalLM",
     .tensors = kLlama,
     .sizes = kSizes,
     .keys = kLlamaKeys,
     .says_head_size = true,
     .says_rotated_size = true},
    {.name = "llama",
     .model_type = "mixtral",
     .class_name = "MixtralForCausalLM",
     .tensors = kMixtral,
     .sizes = kSizes,
     .keys = kMixtralKeys,
     .experts = true,
     .says_head_size = true,
     .says_rotated_size = true,
     .usual_angle_base = 1e6},
    {.name = "nomic-bert",
     .model_type = "nomic_bert",
     .class_name = "NomicBertModel",
     .tensors = kNomicBert,
     .sizes = kEncoderSizes,
     .keys = kNomicBertKeys,
     .encoder = true,
     .usual_angle_base = 1000},
    {.name = "olmo2",
     .model_type = "olmo2",
     .class_name = "Olmo2ForCausalLM",
     .tensors = kOlmo2,
     .sizes = kSizes},
    {.name = "olmoe",
     .model_type = "olmoe",
     .class_name = "OlmoeForCausalLM",
     .tensors = kMixture,
     .sizes = kSizes,
     .keys = kOlmoeKeys,
     .experts = true},
    {.name = "phi3",
     .model_type = "phi3",
     .class_name = "Phi3ForCausalLM",
     .tensors = kPhi3,
     .sizes = kSizes,
     .keys = kPhi3Keys,
     .says_head_size = true,
     .says_rotated_size = true},
    {.name = "qwen2",
     .model_type = "qwen2",
     .class_name = "Qwen2ForCausalLM",
     .tensors = kQwen,
     .sizes = kSizes},
    {.name = "qwen2moe",
     .model_type = "qwen2_moe",
     .class_name = "Qwen2MoeForCausalLM",
     .tensors = kMixture,
     .sizes = kSizes,
     .keys = kQwenMixtureKeys,
     .experts = true},
    {.name = "qwen3",
     .model_type = "qwen3",
     .class_name = "Qwen3ForCausalLM",
     .tensors = kQwen,
     .sizes = kSizes,
     .says_head_size = true},
    // Of its chosen experts the weights are divided by their sum.
    {.name = "qwen3moe",
     .model_type = "qwen3_moe",
     .class_name = "Qwen3MoeForCausalLM",
     .tensors = kMixture,
     .sizes = kSizes,
     .keys = kQwenMixtureKeys,
     .fixed = R"("norm_topk_prob": true)",
     .experts = true,
     .says_head_size = true},
    {.name = "starcoder2",
     .model_type = "starcoder2",
     .class_name = "Starcoder2ForCausalLM",
     .tensors = kStarcoder2,
     .sizes = kSizes,
     .keys = kStarcoder2Keys,
     .tied = true},
    {.name = "t5",
     .model_type = "t5",
     .class_name = "T5ForConditionalGeneration",
     .tensors = kT5,
     .sizes = kT5Sizes,
     .fixed = R"("is_encoder_decoder": true)",
     .only_read = true},
    {.name = "t5encoder",
     .model_type = "t5",
     .class_name = "T5EncoderModel",
     .tensors = kT5Encoder,
     .sizes = kT5Sizes,
     .only_read = true},
};

constexpr std::string_view kBlock = "blk.";
constexpr std::string_view kLayer = "{l}";
constexpr std::string_view kExpert = "{e}";
constexpr std::string_view kGate = "{g}";

/// `pattern` with `number` instead of `mark`.
std::string with_number(std::string_view pattern, std::string_view mark, std::string_view number) {
  const std::size_t at = pattern.find(mark);
  if (at == std::string_view::npos) return std::string(pattern);
  return fmt::format("{}{}{}", pattern.substr(0, at), number, pattern.substr(at + mark.size()));
}

}  // namespace

std::span<const GgufArchitecture> gguf_architecture_table() { return kArchitectures; }

const GgufArchitecture* find_gguf_architecture(std::string_view name, bool experts) {
  const auto* const found =
      std::ranges::find_if(kArchitectures, [&](const GgufArchitecture& architecture) {
        return architecture.name == name && architecture.experts == experts;
      });
  return found == std::end(kArchitectures) ? nullptr : found;
}

bool is_gguf_architecture(std::string_view name) {
  return std::ranges::find(kArchitectures, name, &GgufArchitecture::name) !=
         std::end(kArchitectures);
}

std::string gguf_with_layer(std::string_view pattern, std::string_view layer) {
  return with_number(pattern, kLayer, layer);
}

std::string gguf_with_gate(std::string_view pattern, bool gated) {
  return with_number(pattern, kGate, gated ? "_1" : "");
}

std::string gguf_with_expert(std::string_view pattern, std::uint64_t expert) {
  return with_number(pattern, kExpert, fmt::format("{}", expert));
}

std::string_view gguf_layer_of(std::string_view name) {
  for (const std::string_view stack : {"enc.", "dec."}) {
    if (name.starts_with(stack)) name.remove_prefix(stack.size());
  }
  if (!name.starts_with(kBlock)) return {};
  name.remove_prefix(kBlock.size());
  return name.substr(0, name.find('.'));
}

std::string gguf_name_of(const GgufArchitecture& architecture, std::string_view name) {
  for (const GgufTensorName& row : architecture.tensors) {
    std::string pattern(row.name);
    std::string layer;
    for (const std::string_view mark : {kLayer, kExpert, kGate}) {
      const std::size_t at = pattern.find(mark);
      if (at == std::string::npos || at > name.size()) continue;
      const std::string_view rest = name.substr(at);
      const std::string number(rest.substr(0, rest.find('.')));
      pattern = with_number(pattern, mark, number);
      if (mark == kLayer) layer = number;
    }
    if (pattern == name) return gguf_with_layer(row.own, layer);
  }
  return {};
}

bool is_gguf_matrix(std::string_view name, std::size_t dimensions) {
  return dimensions >= 2 && name.ends_with(".weight") && name != "position_embd.weight" &&
         name != "token_types.weight" && !name.ends_with(".ffn_gate_inp.weight");
}

std::string gguf_architectures(bool written) {
  std::vector<std::string_view> names;
  for (const GgufArchitecture& architecture : kArchitectures) {
    if (written && architecture.only_read) continue;
    // One of two tables may have it.
    if (names.empty() || names.back() != architecture.name) names.push_back(architecture.name);
  }
  return or_list(names);
}

}  // namespace masque::store
