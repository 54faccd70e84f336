// What the files of a model say of how it generates text.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json/json_writer.hpp"
#include "base/types.hpp"
#include "evaluate/write/generation.hpp"

namespace masque::evaluate {

/// When a setting of generation changes the text.
enum class GenerationScope { kAlways, kSampling, kBeams };

/// Settings as generation_config.json and its readers name them; what is nothing is not stated.
struct GenerationSettings : LogitsProcessors {
  std::optional<bool> do_sample;                ///< draws tokens
  std::optional<double> temperature;            ///< divides logits
  std::optional<std::int64_t> top_k;            ///< tokens kept, those of the largest logits
  std::optional<double> top_p;                  ///< share of probability kept
  std::optional<double> min_p;                  ///< least probability, as a share of the largest
  std::optional<double> typical_p;              ///< share kept of the tokens nearest to the entropy
  std::optional<double> epsilon_cutoff;         ///< least probability
  std::optional<double> eta_cutoff;             ///< least probability, by the entropy
  std::optional<std::int64_t> num_beams;        ///< beams; 1: none
  std::optional<double> length_penalty;         ///< exponent of a beam's length
  std::optional<EarlyStopping> early_stopping;  ///< when a beam search ends
  std::optional<std::int64_t> num_return_sequences;  ///< texts of a prompt
  std::optional<std::int64_t> max_new_tokens;        ///< tokens after the prompt
  std::optional<std::int64_t> max_length;            ///< tokens with the prompt

  /// Whether they ask for a beam search.
  bool beams() const { return num_beams.value_or(1) > 1; }
};

/// The names of the settings of LogitsProcessors, and of the samplers min_p, typical_p,
/// epsilon_cutoff and eta_cutoff, that `settings` state.
std::vector<std::string_view> stated_processors(const GenerationSettings& settings);

/// Whether the setting `name` counts only where tokens are sampled. It is one that
/// stated_processors() gives.
bool is_of_sampling(std::string_view name);

/// Adds the settings of `settings` that stated_processors() names to the open object of `json`.
void add_processors(const GenerationSettings& settings, JsonWriter& json);

/// A setting that would change a text.
struct GenerationSetting {
  std::string name;                                  ///< name in the file: "repetition_penalty"
  std::string text;                                  ///< its value, as messages show it
  GenerationScope scope = GenerationScope::kAlways;  ///< when it does
};

/// The settings of a model that transformers' generate (5.24) follows: those of
/// generation_config.json, without that file those of config.json.
struct GenerationConfig {
  std::string path;  ///< path of the file; empty: there is none
  /// Ids that end a text: eos_token_id, a number or a list. None: not stated.
  std::optional<std::vector<TokenId>> ends;
  /// What begins the targets of an encoder–decoder: decoder_start_token_id, else bos_token_id.
  std::optional<TokenId> decoder_start;
  /// Settings that GenerateOptions has fields for, if they differ from what these do by themselves.
  std::vector<GenerationSetting> defaults;
  /// Settings that it has no field for: biases, stop strings, watermarks …
  std::vector<GenerationSetting> unsupported;
  std::vector<std::string> unknown;  ///< names in generation_config.json that nobody understands

  bool do_sample = false;  ///< the file asks for sampling
  bool beams = false;      ///< the file asks for beam search
};

/// Reads the settings of the model at `path`: a folder, or a file of weights in it; a GGUF has
/// none. Throws InputError for a file that is no JSON object or above 16 MiB, and for an
/// eos_token_id that is no id.
GenerationConfig read_generation_config(const std::string& path);

/// Gives `settings` the defaults of `config` that count and that they do not state, as generate
/// does: those of sampling where it is on, with top_k 50 if the file asks for sampling and says
/// nothing of top_k; those of beams in a beam search; lengths unless max_new_tokens is stated.
/// Returns what was used. Throws InputError for a value that is used and that is none.
std::vector<GenerationSetting> use_generation_defaults(const GenerationConfig& config,
                                                       GenerationSettings& settings);

}  // namespace masque::evaluate
