#include "evaluate/write/generation_config.hpp"

#include <array>

#include "base/file/file.hpp"
#include "base/json/json_settings.hpp"

namespace masque::evaluate {

namespace {

/// When a setting changes nothing; null never does.
enum class Neutral {
  kZero,   ///< 0
  kOne,    ///< 1
  kFalse,  ///< false
  kEmpty,  ///< an empty list
  kNever,
};

struct Known {
  std::string_view name;
  Neutral neutral;
  GenerationScope scope = GenerationScope::kAlways;
};

// GenerateOptions' own fields, with what they are by themselves.
constexpr std::array kOwn{
    Known{"do_sample", Neutral::kFalse},
    Known{"temperature", Neutral::kOne, GenerationScope::kSampling},
    Known{"top_k", Neutral::kZero, GenerationScope::kSampling},
    Known{"top_p", Neutral::kOne, GenerationScope::kSampling},
    Known{"num_beams", Neutral::kOne},
    Known{"length_penalty", Neutral::kOne, GenerationScope::kBeams},
    Known{"early_stopping", Neutral::kFalse, GenerationScope::kBeams},
    Known{"num_return_sequences", Neutral::kOne},
    Known{"max_new_tokens", Neutral::kNever},
    Known{"max_length", Neutral::kNever},
};

constexpr std::array kUnsupported{
    Known{"min_length", Neutral::kZero},
    Known{"min_new_tokens", Neutral::kZero},
    Known{"max_time", Neutral::kNever},
    Known{"stop_strings", Neutral::kNever},
    Known{"min_p", Neutral::kZero, GenerationScope::kSampling},
    Known{"top_h", Neutral::kNever, GenerationScope::kSampling},
    Known{"typical_p", Neutral::kOne, GenerationScope::kSampling},
    Known{"epsilon_cutoff", Neutral::kZero, GenerationScope::kSampling},
    Known{"eta_cutoff", Neutral::kZero, GenerationScope::kSampling},
    Known{"repetition_penalty", Neutral::kOne},
    Known{"no_repeat_ngram_size", Neutral::kZero},
    // The prompt is what these mean by an encoder's input.
    Known{"encoder_repetition_penalty", Neutral::kOne},
    Known{"encoder_no_repeat_ngram_size", Neutral::kZero},
    Known{"bad_words_ids", Neutral::kNever},
    Known{"forced_bos_token_id", Neutral::kNever},
    Known{"forced_eos_token_id", Neutral::kNever},
    Known{"exponential_decay_length_penalty", Neutral::kNever},
    Known{"suppress_tokens", Neutral::kEmpty},
    Known{"begin_suppress_tokens", Neutral::kEmpty},
    Known{"sequence_bias", Neutral::kNever},
    Known{"token_healing", Neutral::kFalse},
    Known{"guidance_scale", Neutral::kOne},
    Known{"watermarking_config", Neutral::kNever},
    Known{"is_assistant", Neutral::kFalse},
    Known{"penalty_alpha", Neutral::kZero},
    Known{"dola_layers", Neutral::kNever},
    Known{"diversity_penalty", Neutral::kZero, GenerationScope::kBeams},
    Known{"num_beam_groups", Neutral::kOne, GenerationScope::kBeams},
    Known{"constraints", Neutral::kEmpty},
    Known{"force_words_ids", Neutral::kEmpty},
};

// How the same tokens are computed, what else is returned, ids of padding and beginnings, which
// these texts have otherwise, and what only models with an encoder, or with a second model, read.
constexpr std::string_view kWithoutEffect[] = {
    "use_cache",
    "cache_implementation",
    "cache_config",
    "max_cache_len",
    "use_mtp",
    "renormalize_logits",
    "remove_invalid_values",
    "decoder_start_token_id",
    "output_attentions",
    "output_hidden_states",
    "output_scores",
    "output_logits",
    "return_dict_in_generate",
    "pad_token_id",
    "bos_token_id",
    "num_assistant_tokens",
    "num_assistant_tokens_schedule",
    "assistant_confidence_threshold",
    "prompt_lookup_num_tokens",
    "max_matching_ngram_size",
    "assistant_early_exit",
    "assistant_lookbehind",
    "target_lookbehind",
    "assistant_ensemble_weight",
    "speculation_type",
    "compile_config",
    "disable_compile",
    "continuous_batching_config",
    "low_memory",
    "prefill_chunk_size",
    "transformers_version",
    "_from_model_config",
    "_commit_hash",
};

bool is_neutral(const JsonValue& value, Neutral neutral) {
  switch (neutral) {
    case Neutral::kZero: return value.number() == 0.0;
    case Neutral::kOne: return value.number() == 1.0;
    case Neutral::kFalse: return value.is(JsonKind::kBool) && value.text == "false";
    case Neutral::kEmpty: return value.is(JsonKind::kArray) && value.items.empty();
    case Neutral::kNever: break;
  }
  return false;
}

std::optional<std::vector<TokenId>> read_ends(JsonSettings& settings) {
  constexpr std::string_view kName = "eos_token_id";
  const JsonValue* value = settings.find(kName);
  if (value == nullptr) return std::nullopt;
  std::vector<TokenId> ends;
  const auto add = [&](const JsonValue& one) {
    const std::optional<std::uint64_t> id = one.integer();
    if (!id || *id > INT32_MAX) settings.refuse(kName, "a token id, or a list of them");
    ends.push_back(static_cast<TokenId>(*id));
  };
  if (value->is(JsonKind::kArray)) {
    for (const JsonValue& item : value->items) add(item);
  } else {
    add(*value);
  }
  if (ends.empty()) return std::nullopt;
  return ends;
}

template <class Table>
std::vector<GenerationSetting> different(JsonSettings& settings, const Table& table) {
  std::vector<GenerationSetting> out;
  for (const Known& known : table) {
    const JsonValue* value = settings.find(known.name);
    if (value == nullptr || is_neutral(*value, known.neutral)) continue;
    out.push_back({std::string(known.name), described(*value), known.scope});
  }
  return out;
}

}  // namespace

GenerationConfig read_generation_config(const std::string& path) {
  GenerationConfig config;
  if (path.ends_with(".gguf")) return config;
  const std::string folder = is_folder(path) ? path : folder_of(path);
  const std::string own = join(folder, "generation_config.json");
  const bool has_own = exists(own);
  config.path = has_own ? own : join(folder, "config.json");
  if (!has_own && !exists(config.path)) {
    config.path.clear();
    return config;
  }
  JsonSettings settings = JsonSettings::read(config.path);
  config.ends = read_ends(settings);
  config.defaults = different(settings, kOwn);
  config.unsupported = different(settings, kUnsupported);
  for (const GenerationSetting& setting : config.defaults) {
    config.do_sample = config.do_sample || setting.name == "do_sample";
    config.beams = config.beams || setting.name == "num_beams";
  }
  for (const std::string_view name : kWithoutEffect) settings.ignore({name});
  if (has_own) config.unknown = settings.unknown();
  return config;
}

}  // namespace masque::evaluate
