// What llama.cpp calls the models that are run, next to what transformers calls them.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace masque::store {

/// How a tensor differs from what transformers has.
enum class GgufChange {
  kNone,
  kQueryRows,  ///< rows of each head are pairs of neighbours, not halves
  kKeyRows,    ///< the same, with the heads of keys
  kPlusOne,    ///< a norm with 1 added
};

/// A tensor by both names; "{l}" is the number of a layer.
struct GgufTensorName {
  std::string_view own;                   ///< llama.cpp's
  std::string_view name;                  ///< of transformers
  GgufChange change = GgufChange::kNone;  ///< what llama.cpp's converter did to it
};

/// A key after the architecture's name, and that of config.json.
struct GgufConfigKey {
  std::string_view own;   ///< llama.cpp's
  std::string_view name;  ///< of config.json; empty: changes nothing
};

/// What an architecture of llama.cpp is in transformers.
struct GgufArchitecture {
  std::string_view name;                    ///< general.architecture
  std::string_view model_type;              ///< of config.json
  std::string_view class_name;              ///< in `architectures` of config.json
  std::span<const GgufTensorName> tensors;  ///< all that it may have
  std::span<const GgufConfigKey> sizes;     ///< those that most have, kSizes or others
  std::span<const GgufConfigKey> keys;      ///< further ones
  std::string_view activation;              ///< hidden_activation, where the class has another one
  bool tied = false;                        ///< what the class takes without tie_word_embeddings
  bool transposes = false;  ///< matrices of layers have inputs as rows in transformers
};

/// The architectures whose models are run, by name; they live for ever.
std::span<const GgufArchitecture> gguf_architecture_table();
/// The architecture called `name`; nullptr for one whose models are not run.
const GgufArchitecture* find_gguf_architecture(std::string_view name);

/// Their names, as "gemma, … or starcoder2", for messages.
std::string gguf_architectures();

/// `pattern` with the number `layer` instead of {l}.
std::string gguf_with_layer(std::string_view pattern, std::string_view layer);
/// The number of the layer in llama.cpp's `name`, as it is spelled; a view of it; empty: none.
std::string_view gguf_layer_of(std::string_view name);

/// A tensor that the config has instead: what divides the angles of all texts.
inline constexpr std::string_view kGgufFrequencies = "rope_freqs.weight";
/// The same for long texts alone.
inline constexpr std::string_view kGgufLongFactors = "rope_factors_long.weight";
/// The same for short texts alone.
inline constexpr std::string_view kGgufShortFactors = "rope_factors_short.weight";

}  // namespace masque::store
