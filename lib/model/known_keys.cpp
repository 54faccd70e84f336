#include "model/known_keys.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/string/name_list.hpp"
#include "base/string/parse_number.hpp"
#include "base/string/split.hpp"
#include "store/markers.hpp"

namespace masque::model {

namespace {

/// What a value is judged by: the config, the design that it gave, the value.
struct Judged {
  const FamilyConfig& config;
  const Design& design;
  const JsonValue& value;
};

/// Keys with the same meaning.
struct KnownKeys {
  /// Names of families between spaces; empty: all.
  std::string_view families;
  /// Names of keys between spaces.
  std::string_view names;
  /// Values that change nothing, between spaces; "*": all do. Null never changes anything.
  std::string_view harmless;
  /// What another value would change; empty with "*".
  std::string_view effect = {};
  /// Further values that change nothing; nullptr: none.
  bool (*also_harmless)(const Judged& judged) = nullptr;
};

bool is_number(const Judged& judged, double number) {
  return judged.value.is(JsonKind::kNumber) && judged.value.number() == number;
}

bool is_head_size(const Judged& judged) {
  return is_number(judged, static_cast<double>(judged.design.head_size));
}

bool is_number_of_heads(const Judged& judged) {
  return is_number(judged, static_cast<double>(judged.design.num_attention_heads));
}

/// Whether rope_scaling, which counts before other parameters, has members.
bool has_rope_scaling(const Judged& judged) {
  return judged.config.raw().spelling("rope_scaling").find(':') != std::string::npos;
}

/// A window that no text can leave, or one that is switched off.
bool is_unused_window(const Judged& judged) {
  if (judged.config.has("use_sliding_window") && !judged.config.flag("use_sliding_window", true))
    return true;
  const Index longest = judged.design.max_position_embeddings;
  return judged.value.is(JsonKind::kNumber) && longest > 0 &&
         judged.value.number() >= static_cast<double>(longest);
}

/// ModernBERT's own window under the name of its class.
bool is_half_local_attention(const Judged& judged) {
  const Index half = judged.config.size({"local_attention"}, 128) / 2;
  return is_number(judged, static_cast<double>(half));
}

bool is_all_full_attention(const Judged& judged) {
  return judged.value.is(JsonKind::kArray) &&
         std::ranges::all_of(judged.value.items, [](const JsonValue& item) {
           return item.is(JsonKind::kString) && item.text == "full_attention";
         });
}

/// The activation of T5's layers, which feed_forward_proj names.
bool is_own_activation(const Judged& judged) {
  return judged.value.is(JsonKind::kString) &&
         kernel::find_activation(judged.value.text) == judged.design.activation;
}

bool is_own_gate(const Judged& judged) {
  return judged.value.is(JsonKind::kBool) && (judged.value.text == "true") == judged.design.gated;
}

constexpr std::string_view kAny = "*";

// A literal, since the rows below are constant expressions.
#define MASQUE_DECODERS                                                                    \
  "cohere falcon gemma gpt_neox gpt_oss granite llama mistral olmo phi phi3 qwen smollm3 " \
  "stablelm "                                                                              \
  "starcoder2"

// The first row that has family and name counts. Sources: the configuration classes of
// transformers 4 and 5, and what their models read of them; published config.json files.
constexpr KnownKeys kKnownKeys[] = {
    // Read by some families only.
    {"bloom gpt2 gpt_neo gptj mpt opt t5 xlnet " MASQUE_DECODERS, "is_decoder", kAny},
    {"", "is_decoder", "false", "whether tokens read later ones"},
    {"bloom gpt2 gpt_neo gptj mpt opt " MASQUE_DECODERS, "is_causal", "true",
     "whether tokens read later ones"},
    {"", "is_causal", "false", "whether tokens read later ones"},
    {"", "use_bidirectional_attention", "false", "whether tokens read later ones"},
    {"", "add_cross_attention", "false", "whether another model's states are read"},
    {"t5 xlnet", "max_position_embeddings", kAny},
    {"t5", "tie_word_embeddings num_decoder_layers scale_decoder_outputs", kAny},
    // Of the decoder, and of classes before those of transformers.
    {"bart",
     "add_bias_logits add_final_layer_norm classif_dropout decoder_attention_heads "
     "decoder_ffn_dim decoder_layerdrop decoder_layers encoder_layerdrop extra_pos_embeddings "
     "force_bos_token_to_be_generated normalize_before normalize_embedding save_step "
     "static_position_embeddings tie_word_embeddings",
     kAny},
    {"t5", "dense_act_fn", "", "another activation than feed_forward_proj", is_own_activation},
    {"t5", "is_gated_act", "", "another feed-forward layer than feed_forward_proj", is_own_gate},
    {"distilbert", "sinusoidal_pos_embds", kAny},  // the file has the table
    {"deberta_v2",
     "position_buckets max_relative_positions share_att_key norm_rel_ebd conv_act conv_groups "
     "padding_idx",
     kAny},
    {"modernbert", "position_embedding_type local_attention global_attn_every_n_layers", kAny},
    {"modernbert", "local_rope_theta global_rope_theta rope_theta", kAny},
    {"modernbert", "sliding_window", "", "another window than local_attention",
     is_half_local_attention},
    {"gpt_neox", "partial_rotary_factor rope_theta", kAny},  // rotary_pct and rotary_emb_base count
    {MASQUE_DECODERS, "rope_parameters", "", "rotary positions, next to rope_scaling",
     has_rope_scaling},
    {"bloom",
     "bias_dropout_fusion masked_softmax_fusion n_inner offset_alibi seq_length skip_bias_add "
     "skip_bias_add_qkv slow_but_exact unk_token_id",
     kAny},
    {"esm", "esmfold_config vocab_list", kAny},
    {"longformer", "ignore_attention_mask onnx_export", kAny},
    {"big_bird", "block_size num_random_blocks", kAny},
    {"fnet", "num_attention_heads tpu_short_seq_length", kAny},
    {"neobert",
     "base_scale classifier_init_range decoder_init_range dim_head embedding_init_range "
     "flash_attention kwargs max_position_embeddings tie_word_embeddings",
     kAny},
    {"gpt_neo", "embed_dropout resid_dropout", kAny},
    {"gptj", "rotary scale_attn_weights", kAny},
    {"mpt",
     "attn_impl attn_pdrop emb_pdrop embedding_fraction init_device learned_pos_emb norm_type",
     kAny},
    {"nomic_bert", "rotary_scaling_factor", "", "rotary positions"},
    {"nomic_bert",
     "dense_seq_output fused_bias_fc fused_dropout_add_ln last_layer_subset max_trained_positions "
     "pad_vocab_size_multiple parallel_block_tied_norm use_flash_attn use_xentropy",
     kAny},
    {"llada", "tie_word_embeddings", kAny},  // weight_tying counts
    {"llada",
     "alibi_bias_max embedding_dropout flash_attention init_cutoff_factor init_device init_fn "
     "init_std precision residual_dropout rope_full_precision",
     kAny},
    {"dream", "use_mrope", "false", "rotary positions"},
    {"masque",
     "attention_key_size attention_scale attn_logit_softcapping clip_after_norms clip_qkv detector "
     "embedding_norm "
     "embedding_scale final_logit_softcapping final_norm gated "
     "head head_act head_norm head_scale head_shifted head_size head_transform hidden_act "
     "input_residual "
     "intermediate_size largest_keys late_positions latent layer_kind mask mixer "
     "mixer_attention_size mixer_chunk_size mixer_dilation mixer_inner_size mixer_kernel_size "
     "mixer_output norm norm_placement norm_weight_offset norm_weights normalizer "
     "num_attention_heads "
     "num_key_value_heads partial_rotary_factor position position_embedding_type position_shared "
     "positions_after_projection "
     "previous_scores query_key_norm residual_multiplier residual_scale rope_theta "
     "rotary_interleaved sinusoidal_interleaved softmax_heads streams talking_heads "
     "tie_word_embeddings use_bias value_heads value_size window",
     kAny},
    {"albert", "net_structure_type num_memory_blocks gap_size", "0", "ALBERT's memory blocks"},
    {"albert", "down_scale_factor", "1", "ALBERT's memory blocks"},
    {"albert", "layers_to_keep", kAny},
    {"bert tta", "directionality", "bidi", "whether tokens read later ones"},

    // Numbers of quantised weights.
    {"", "quantization_config quantization compression_config", "{}",
     "how the stored numbers are scaled"},
    {"", "transformers_weights", "", "which file has the weights"},

    // What other families compute.
    {"", "sliding_window", "", "how far a token reads", is_unused_window},
    {"", "use_sliding_window", "false", "how far a token reads"},
    {"", "attention_chunk_size attention_window local_attention", "", "how far a token reads"},
    {"", "max_window_layers sliding_window_pattern _sliding_window_pattern", kAny},
    {"", "layer_types", "", "how far a token reads", is_all_full_attention},
    {"", "final_logit_softcapping logit_softcapping logits_soft_cap", "", "a bound on the logits"},
    {"", "attn_logit_softcapping attention_logit_softcapping", "", "a bound on the scores"},
    {"", "query_pre_attn_scalar", "", "the scale of the scores", is_head_size},
    {"", "attention_multiplier", "", "the scale of the scores"},
    {"",
     "embedding_multiplier residual_multiplier logits_scaling logit_scale scale_emb "
     "lm_head_multiplier key_multiplier attention_in_multiplier attention_out_multiplier "
     "embedding_scale residual_scale head_scale",
     "1", "the scale of states or logits"},
    {"", "scale_depth dim_model_base mup_enabled mlp_multipliers", "false",
     "the scale of states or logits"},
    {"", "scale_embedding", "false", "the scale of embeddings"},
    {"", "head_dim attention_head_size", "", "the size of the heads", is_head_size},
    {"", "num_key_value_heads num_kv_heads", "", "heads that share keys and values",
     is_number_of_heads},
    {"", "multi_query", "false", "heads that share keys and values"},
    {"", "partial_rotary_factor rotary_pct", "1", "how much of each head is rotated"},
    {"", "rope_interleaved rope_interleave", "false", "the layout of rotary positions"},
    {"", "rotary_dim", "", "how much of each head is rotated"},
    {"", "no_rope_layers no_rope_layer_interval", "[]", "layers without positions"},
    {"", "position_embedding_type", "absolute rope rotary", "the kind of positions"},
    {"", "alibi use_alibi", "false", "the kind of positions"},
    {"", "use_qk_norm qk_norm qk_layernorm use_qk_layernorm", "false", "norms of queries and keys"},
    {"", "clip_qkv", "", "a bound on queries, keys and values"},
    {"", "parallel_attn use_parallel_residual", "false", "the order of attention and feed-forward"},
    {"", "pruned_heads", "{}", "which heads there are"},

    // Names, versions, and what programs note.
    {"",
     "architectures auto_map custom_pipelines dtype finetuning_task language license model_type "
     "name_or_path prefix processor_class task_specific_params tokenizer_class torch_dtype "
     "torchscript is_llama_config transformers.js_config transformers_version unsloth_fixed "
     "unsloth_version base_model_type changes",
     kAny},
    // How programs compute the same.
    {"",
     "attn_implementation cache_implementation attention_softmax_in_fp32 base_model_pp_plan "
     "base_model_tp_plan "
     "chunk_size_feed_forward deterministic_flash_attn experts_implementation "
     "gradient_checkpointing "
     "is_encoder_decoder output_attentions output_hidden_states output_past pretraining_tp "
     "reference_compile reorder_and_upcast_attn repad_logits_with_grad return_dict "
     "tensor_parallel_degree tf_legacy_loss tie_encoder_decoder tie_weights_ use_bfloat16 "
     "use_cache "
     "use_flash_attention use_flash_attention_2 use_flash_attn use_mems_eval use_mems_train "
     "use_return_dict xla_device mem_len reuse_len cross_attention_hidden_size sparse_prediction "
     "sparse_pred_ignore_index afn n_special predict_special_tokens",
     kAny},
    // Training, and what starts with random numbers.
    {"",
     "activation_dropout attention_dropout attention_probs_dropout_prob attn_pdrop "
     "classifier_dropout classifier_dropout_prob cls_dropout dropatt dropout dropout_rate "
     "embd_pdrop "
     "embedding_dropout hidden_dropout hidden_dropout_prob init init_range init_std "
     "initializer_cutoff_factor "
     "initializer_factor initializer_range layerdrop mlp_dropout output_dropout "
     "output_router_logits pooler_dropout "
     "qa_dropout resid_pdrop residual_dropout router_aux_loss_coef router_jitter_noise "
     "seq_classif_dropout summary_first_dropout "
     "summary_last_dropout",
     kAny},
    // Heads that read one state of a text, and their labels: see choose_text_head.
    {"",
     "_num_labels classifier_activation classifier_bias classifier_mask classifier_pooling "
     "decoder_bias end_n_top id2label label2id num_labels pooler_activation pooler_fc_size "
     "pooler_hidden_act "
     "pooler_hidden_size pooler_num_attention_heads pooler_num_fc_layers pooler_size_per_head "
     "pooler_type problem_type sbert_ce_default_activation_function sentence_transformers "
     "start_n_top summary_activation summary_proj_to_labels summary_type "
     "summary_use_proj",
     kAny},
    // Tokens, and what generates texts.
    {"",
     "bad_words_ids begin_suppress_tokens begin_token_id bos_token_id cls_token_id "
     "decoder_start_token_id "
     "diversity_penalty do_sample early_stopping encoder_no_repeat_ngram_size eos_token_id "
     "exponential_decay_length_penalty forced_bos_token_id forced_eos_token_id length_penalty "
     "mask_token_id max_length max_new_tokens min_length no_repeat_ngram_size num_beam_groups "
     "num_beams "
     "num_return_sequences output_scores pad_token_id remove_invalid_values repetition_penalty "
     "return_dict_in_generate sep_token_id suppress_tokens temperature top_k top_p typical_p "
     "unk_token_id",
     kAny},
    // Sizes that tensors have as well, or that limit texts in other programs.
    {"",
     "attention_bias embedding_size hidden_size_per_head max_seq_length max_sequence_length "
     "mlp_bias model_max_length n_ctx n_positions norm_bias qkv_bias seq_length use_bias",
     kAny},
    // Other names of activations and epsilons, which these families' classes do not read.
    {"",
     "activation activation_function hidden_act hidden_activation layer_norm_eps "
     "layer_norm_epsilon norm_eps rms_norm_eps",
     kAny},
    // Rotary positions of models without them; rope_scaling counts before the others.
    {"", "rope_parameters rope_scaling rope_theta original_max_position_embeddings", kAny},
};

#undef MASQUE_DECODERS

/// Keys inside of rope_scaling and rope_parameters: of those that a type does not read all values
/// change nothing.
constexpr std::string_view kRotaryKeys =
    "type rope_type factor low_freq_factor high_freq_factor original_max_position_embeddings "
    "beta_fast beta_slow mscale mscale_all_dim attention_factor truncate long_factor short_factor "
    "mrope_section mrope_interleaved finetuned";

/// Whether a value is what `word` spells: a number, a text, true, false, [] or {}.
bool spells(std::string_view word, const JsonValue& value) {
  switch (value.kind) {
    case JsonKind::kArray: return word == "[]" && value.items.empty();
    case JsonKind::kObject: return word == "{}" && value.members.empty();
    case JsonKind::kNumber: return parse_number<double>(word) == value.number();
    default: return word == value.text;
  }
}

std::string expected_values(const KnownKeys& known) {
  std::string expected = "no value";
  if (known.also_harmless == is_unused_window)
    return "no value or at least max_position_embeddings";
  for (const std::string_view word : split(known.harmless, ' ')) {
    if (!word.empty()) expected += fmt::format(" or {}", word);
  }
  return expected;
}

const KnownKeys* find_known(std::string_view family, std::string_view name) {
  for (const KnownKeys& known : kKnownKeys) {
    if ((known.families.empty() || has_word(known.families, family)) && has_word(known.names, name))
      return &known;
  }
  return nullptr;
}

}  // namespace

std::vector<std::string> check_unused_keys(const FamilyConfig& config, const Family& family,
                                           const Design& design) {
  // A changed family's config has the keys of the family that it changes.
  const Family* base = find_family(config.raw().string("base_model_type").value_or(""));
  const std::string_view name = base == nullptr ? family.name : base->name;
  const auto refuse = [&](const UnusedKey& key, std::string_view expected,
                          std::string_view effect) {
    std::string value =
        config.raw().text().substr(key.value.begin, key.value.end - key.value.begin);
    if (value.size() > 60) value = value.substr(0, 60) + "…";
    throw InputError(config.raw().path(),
                     fmt::format("{} is {}, expected {}: it changes {}, which is not supported for "
                                 "family {}",
                                 key.name, escape(value), expected, effect, name));
  };
  std::vector<std::string> unknown;
  for (const UnusedKey& key : config.unused_keys()) {
    // Notes of transformers to itself, and ours.
    if (key.name.starts_with('_') || key.name.starts_with(store::kMarkerPrefix)) continue;
    const KnownKeys* known = find_known(name, key.name);
    const std::size_t dot = key.name.rfind('.');
    if (known == nullptr && key.name.starts_with("attn_config.")) {
      if (key.name[dot + 1] == '_') continue;
      known = find_known(name, std::string_view(key.name).substr(dot + 1));
    }
    if (known == nullptr && dot != std::string::npos && key.name.starts_with("rope_")) {
      if (key.value.is(JsonKind::kObject))
        refuse(key, "no value", "the rotary positions of some layers");
      if (has_word(kRotaryKeys, std::string_view(key.name).substr(dot + 1))) continue;
    }
    if (known == nullptr) {
      unknown.push_back(key.name);
      continue;
    }
    const auto fits = [&](std::string_view word) { return spells(word, key.value); };
    const bool harmless =
        known->harmless == kAny || std::ranges::any_of(split(known->harmless, ' '), fits) ||
        (known->also_harmless != nullptr && known->also_harmless({config, design, key.value}));
    if (!harmless) refuse(key, expected_values(*known), known->effect);
  }
  return unknown;
}

std::string unknown_keys_note(const std::vector<std::string>& unknown) {
  std::string names;
  for (const std::string& name : unknown)
    names += fmt::format("{}{}", names.empty() ? "" : ", ", escape(name));
  return fmt::format("unknown keys are not used: {}", names);
}

ModelPlan read_plan(const Family& family, const FamilyConfig& config) {
  ModelPlan plan = family.plan(config);
  const std::vector<std::string> unknown = check_unused_keys(config, family, plan.design);
  if (!unknown.empty()) plan.design.notes.push_back("config.json: " + unknown_keys_note(unknown));
  return plan;
}

}  // namespace masque::model
