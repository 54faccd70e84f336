#include "evaluate/write/generation_config.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <span>
#include <variant>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/file/file.hpp"
#include "base/json/json_settings.hpp"
#include "evaluate/write/beam_search.hpp"

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

using Ids = std::vector<TokenId>;
using Words = std::vector<Ids>;
using S = GenerationSettings;

/// The field of a setting, which knows the type of its value.
using Field = std::variant<std::optional<bool> S::*, std::optional<double> S::*,
                           std::optional<std::int64_t> S::*, std::optional<EarlyStopping> S::*,
                           std::optional<Ids> S::*, std::optional<Words> S::*>;

/// A setting that GenerateOptions has a field for.
struct Own : Known {
  Field field;
  double least = 0;  ///< of a number
  double most = std::numeric_limits<double>::infinity();
  bool processor = false;  ///< one of stated_processors()
};

constexpr double kSmallest = std::numeric_limits<double>::min();
constexpr double kBelowOne = 0x1.fffffffffffffp-1;
constexpr double kMostId = INT32_MAX;
constexpr GenerationScope kSampled = GenerationScope::kSampling;
constexpr GenerationScope kInBeams = GenerationScope::kBeams;

// With what they are by themselves.
constexpr std::array kOwn{
    Own{{"do_sample", Neutral::kFalse}, &S::do_sample},
    Own{{"temperature", Neutral::kOne, kSampled}, &S::temperature, kSmallest},
    Own{{"top_k", Neutral::kZero, kSampled}, &S::top_k, 0},
    Own{{"top_p", Neutral::kOne, kSampled}, &S::top_p, 0, 1},
    Own{{"min_p", Neutral::kZero, kSampled}, &S::min_p, 0, 1, true},
    Own{{"typical_p", Neutral::kOne, kSampled}, &S::typical_p, kSmallest, 1, true},
    Own{{"epsilon_cutoff", Neutral::kZero, kSampled}, &S::epsilon_cutoff, 0, kBelowOne, true},
    Own{{"eta_cutoff", Neutral::kZero, kSampled}, &S::eta_cutoff, 0, kBelowOne, true},
    Own{{"num_beams", Neutral::kOne}, &S::num_beams, 1},
    Own{{"length_penalty", Neutral::kOne, kInBeams}, &S::length_penalty, -1e3, 1e3},
    Own{{"early_stopping", Neutral::kFalse, kInBeams}, &S::early_stopping},
    Own{{"num_return_sequences", Neutral::kOne}, &S::num_return_sequences, 1},
    Own{{"max_new_tokens", Neutral::kNever}, &S::max_new_tokens, 1},
    Own{{"max_length", Neutral::kNever}, &S::max_length, 1},
    Own{{"repetition_penalty", Neutral::kOne},
        &S::repetition_penalty,
        kSmallest,
        std::numeric_limits<double>::max(),
        true},
    Own{{"no_repeat_ngram_size", Neutral::kZero}, &S::no_repeat_ngram_size, 0, 1e9, true},
    Own{{"bad_words_ids", Neutral::kEmpty}, &S::bad_words_ids, 0, kMostId, true},
    Own{{"min_length", Neutral::kZero}, &S::min_length, 0, 1e9, true},
    Own{{"min_new_tokens", Neutral::kNever}, &S::min_new_tokens, 0, 1e9, true},
    Own{{"forced_bos_token_id", Neutral::kNever}, &S::forced_bos_token_id, 0, kMostId, true},
    Own{{"forced_eos_token_id", Neutral::kNever}, &S::forced_eos_token_id, 0, kMostId, true},
    Own{{"suppress_tokens", Neutral::kEmpty}, &S::suppress_tokens, 0, kMostId, true},
    Own{{"begin_suppress_tokens", Neutral::kEmpty}, &S::begin_suppress_tokens, 0, kMostId, true},
};

constexpr std::array kUnsupported{
    Known{"max_time", Neutral::kNever},
    Known{"stop_strings", Neutral::kNever},
    Known{"top_h", Neutral::kNever, GenerationScope::kSampling},
    // The prompt is what these mean by an encoder's input.
    Known{"encoder_repetition_penalty", Neutral::kOne},
    Known{"encoder_no_repeat_ngram_size", Neutral::kZero},
    Known{"exponential_decay_length_penalty", Neutral::kNever},
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

/// The ids of `value`, a number or a list; nothing if it is neither.
std::optional<Ids> ids_in(const JsonValue& value) {
  Ids ids;
  const std::span<const JsonValue> items =
      value.is(JsonKind::kArray) ? std::span<const JsonValue>(value.items) : std::span(&value, 1);
  for (const JsonValue& item : items) {
    const std::optional<std::uint64_t> id = item.integer();
    if (!id || *id > INT32_MAX) return std::nullopt;
    ids.push_back(static_cast<TokenId>(*id));
  }
  return ids;
}

/// Refuses the value of the setting `name`, in which something is no token id: by that.
[[noreturn]] void refuse_ids(JsonSettings& settings, std::string_view name, const JsonValue& value,
                             std::string_view expected) {
  if (!value.is(JsonKind::kArray)) settings.refuse(name, expected);
  const auto wrong = std::ranges::find_if(value.items, [](const JsonValue& item) {
    return item.is(JsonKind::kArray) || !ids_in(item);
  });
  throw InputError(
      settings.path(),
      fmt::format("{} {}, expected {}", name,
                  wrong == value.items.end() ? "is an empty list" : "has " + described(*wrong),
                  expected));
}

std::optional<Ids> read_ends(JsonSettings& settings) {
  constexpr std::string_view kName = "eos_token_id";
  const JsonValue* value = settings.find(kName);
  if (value == nullptr) return std::nullopt;
  std::optional<Ids> ends = ids_in(*value);
  if (!ends) refuse_ids(settings, kName, *value, "a token id, or a list of them");
  if (ends->empty()) return std::nullopt;
  return ends;
}

/// The token of the setting `name`; nothing if it is none, as −1 or a list, which only models that
/// read it must not have.
std::optional<TokenId> read_token(JsonSettings& settings, std::string_view name) {
  const JsonValue* value = settings.find(name);
  if (value == nullptr) return std::nullopt;
  const std::optional<std::uint64_t> id = value->integer();
  return id && *id <= INT32_MAX ? std::optional(static_cast<TokenId>(*id)) : std::nullopt;
}

std::optional<TokenId> read_decoder_start(JsonSettings& settings) {
  const auto start = read_token(settings, "decoder_start_token_id");
  return start ? start : read_token(settings, "bos_token_id");
}

// Each reads the value of a setting into its field.

void read_value(const Own& own, JsonSettings& settings, std::optional<bool>& out) {
  out = settings.flag(own.name, false);
}

void read_value(const Own& own, JsonSettings& settings, std::optional<double>& out) {
  out = settings.find(own.name)->number();
  if (out && *out >= own.least && *out <= own.most) return;
  settings.refuse(own.name, own.least == kSmallest ? "a number greater than 0"
                            : own.most == kBelowOne
                                ? "a number from 0 to below 1"
                                : fmt::format("a number from {} to {}", own.least, own.most));
}

void read_value(const Own& own, JsonSettings& settings, std::optional<std::int64_t>& out) {
  const double most = std::min(own.most, 1e9);
  // A whole number may be spelled 5.0.
  const std::optional<double> number = settings.find(own.name)->number();
  if (!number || *number != std::floor(*number) || *number < own.least || *number > most) {
    settings.refuse(own.name, fmt::format("a whole number from {} to {:.0f}", own.least, most));
  }
  out = static_cast<std::int64_t>(*number);
}

void read_value(const Own& own, JsonSettings& settings, std::optional<EarlyStopping>& out) {
  const JsonValue& value = *settings.find(own.name);
  const bool text = value.is(JsonKind::kBool) || value.is(JsonKind::kString);
  for (const auto& [name, one] : early_stopping_names()) {
    const bool quoted = one == EarlyStopping::kNever;
    if (text && value.text == name && value.is(JsonKind::kString) == quoted) out = one;
  }
  if (!out) settings.refuse(own.name, "true, false or \"never\"");
}

void read_value(const Own& own, JsonSettings& settings, std::optional<Ids>& out) {
  const JsonValue& value = *settings.find(own.name);
  out = ids_in(value);
  if (!out || out->empty()) refuse_ids(settings, own.name, value, "a token id, or a list of them");
}

void read_value(const Own& own, JsonSettings& settings, std::optional<Words>& out) {
  constexpr std::string_view kExpected = "a list of lists of token ids";
  const JsonValue& value = *settings.find(own.name);
  out.emplace();
  for (const JsonValue& item : value.items) {
    if (!item.is(JsonKind::kArray)) settings.refuse(own.name, kExpected);
    const std::optional<Ids> word = ids_in(item);
    if (!word || word->empty()) refuse_ids(settings, own.name, item, kExpected);
    out->push_back(*word);
  }
  if (!value.is(JsonKind::kArray)) settings.refuse(own.name, kExpected);
}

void write_value(JsonWriter& json, const Ids& ids) { json.array(ids); }
void write_value(JsonWriter& json, const Words& words) {
  json.begin_array();
  for (const Ids& ids : words) json.array(ids);
  json.end_array();
}
template <class Value>
void write_value(JsonWriter& json, const Value& value) {
  json.value(value);
}

bool states(const GenerationSettings& settings, const Own& own) {
  return std::visit([&](const auto member) { return (settings.*member).has_value(); }, own.field);
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

std::vector<std::string_view> stated_processors(const GenerationSettings& settings) {
  std::vector<std::string_view> out;
  for (const Own& own : kOwn) {
    if (own.processor && states(settings, own)) out.push_back(own.name);
  }
  return out;
}

bool is_of_sampling(std::string_view name) {
  const auto* own = std::ranges::find(kOwn, name, &Own::name);
  MASQUE_CHECK(own != kOwn.end());
  return own->scope == GenerationScope::kSampling;
}

void add_processors(const GenerationSettings& settings, JsonWriter& json) {
  for (const Own& own : kOwn) {
    if (!own.processor || !states(settings, own)) continue;
    json.key(own.name);
    std::visit(
        [&](const auto member) {
          using Value = std::remove_cvref_t<decltype(*(settings.*member))>;
          if constexpr (!std::is_same_v<Value, EarlyStopping>) {
            write_value(json, *(settings.*member));
          }
        },
        own.field);
  }
}

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
  config.decoder_start = read_decoder_start(settings);
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

std::vector<GenerationSetting> use_generation_defaults(const GenerationConfig& config,
                                                       GenerationSettings& settings) {
  std::vector<GenerationSetting> used;
  if (config.path.empty()) return used;
  JsonSettings file = JsonSettings::read(config.path);
  const bool length_is_stated = settings.max_new_tokens.has_value();
  // do_sample and num_beams are first of their kind in the table: they decide what else counts.
  for (const Own& own : kOwn) {
    const bool is_length = own.name == "max_new_tokens" || own.name == "max_length";
    if (is_length && (length_is_stated || settings.max_new_tokens)) continue;
    if (states(settings, own) || file.find(own.name) == nullptr) continue;
    if (own.scope == GenerationScope::kSampling && !settings.do_sample.value_or(false)) continue;
    if (own.scope == GenerationScope::kBeams && !settings.beams()) continue;
    const JsonValue& value = *file.find(own.name);
    if (is_neutral(value, own.neutral)) continue;
    // What replaces min_length, on the command line as in the file.
    if (own.name == "min_length" && (settings.min_new_tokens || file.find("min_new_tokens")))
      continue;
    std::visit([&](const auto member) { read_value(own, file, settings.*member); }, own.field);
    used.push_back({std::string(own.name), described(value), own.scope});
  }
  if (config.do_sample && settings.do_sample == true && !settings.top_k && !file.find("top_k")) {
    constexpr std::int64_t kTopK = 50;
    settings.top_k = kTopK;
    used.push_back({"top_k", fmt::format("{} (the default of generate)", kTopK), kSampled});
  }
  return used;
}

}  // namespace masque::evaluate
