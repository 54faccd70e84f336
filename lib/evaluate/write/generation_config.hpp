// What the files of a model say of how it generates text.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/types.hpp"

namespace masque::evaluate {

/// When a setting of generation changes the text.
enum class GenerationScope { kAlways, kSampling, kBeams };

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
  /// Settings that differ from what GenerateOptions does by itself, but which its fields can have:
  /// do_sample, temperature, num_beams …
  std::vector<GenerationSetting> defaults;
  /// Settings that GenerateOptions has no field for: penalties, suppressed and forced tokens …
  std::vector<GenerationSetting> unsupported;
  std::vector<std::string> unknown;  ///< names in generation_config.json that nobody understands

  bool do_sample = false;  ///< the file asks for sampling
  bool beams = false;      ///< the file asks for beam search
};

/// Reads the settings of the model at `path`: a folder, or a file of weights in it; a GGUF has
/// none. Throws InputError for a file that is no JSON object or above 16 MiB, and for an
/// eos_token_id that is no id.
GenerationConfig read_generation_config(const std::string& path);

}  // namespace masque::evaluate
