// What llama.cpp calls the models that are run, next to what transformers calls them.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace masque::store {

/// How a tensor differs from what transformers has.
enum class GgufChange {
  kNone,
  kQueryRows,    ///< rows of each head are pairs of neighbours, not halves
  kKeyRows,      ///< the same, with the heads of keys
  kPlusOne,      ///< a norm with 1 added
  kVector,       ///< the only row of a matrix
  kTurned,       ///< experts, each with its matrix turned: inputs as rows in transformers
  kTurnedOfTwo,  ///< the same, of which transformers joins two tensors: their outputs in turn
};

/// A tensor by both names; "{l}" is the number of a layer, "{g}" is "_1" next to a gate, else
/// empty. With "{e}", the number of an expert, in `name` one of llama.cpp's tensors holds those of
/// all experts. Two rows with one `name` follow each other: their tensors are joined to one.
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
  std::string_view name;                     ///< general.architecture
  std::string_view model_type;               ///< of config.json
  std::string_view class_name;               ///< in `architectures` of config.json
  std::span<const GgufTensorName> tensors;   ///< all that it may have
  std::span<const GgufConfigKey> sizes;      ///< those that most have, kSizes or others
  std::span<const GgufConfigKey> keys = {};  ///< further ones
  /// Members of config.json whose value the architecture says: "name": value, …
  std::string_view fixed = {};
  std::string_view fixed_angles = {};  ///< the same, of rope_scaling
  bool encoder =
      false;  ///< reads both sides and ends with hidden states: attention.causal is false
  bool only_read = false;          ///< no files are written
  bool experts = false;            ///< its layers have experts: expert_count is above 0
  bool tied = false;               ///< what the class takes without tie_word_embeddings
  bool transposes = false;         ///< matrices of layers have inputs as rows in transformers
  bool says_head_size = false;     ///< written files have attention.key_length in any case
  bool says_rotated_size = false;  ///< written files have rope.dimension_count in any case
  /// Written files have expert_feed_forward_length where it is that of feed_forward_length, too.
  bool says_expert_size = false;
  double usual_angle_base = 10000;  ///< rope_theta of a config.json without one
};

/// The architectures whose models are run, by name; they live for ever.
std::span<const GgufArchitecture> gguf_architecture_table();
/// The architecture called `name`, with experts or without; nullptr for one whose models are not
/// run, or not so.
const GgufArchitecture* find_gguf_architecture(std::string_view name, bool experts);
/// Whether models of the architecture called `name` are run.
bool is_gguf_architecture(std::string_view name);

/// Their names, as "gemma, … or starcoder2", for messages; `written` ones alone if so.
std::string gguf_architectures(bool written = false);

/// `pattern` with the number `layer` instead of {l}.
std::string gguf_with_layer(std::string_view pattern, std::string_view layer);
/// `pattern` with "_1" instead of {g} if `gated`, else without it.
std::string gguf_with_gate(std::string_view pattern, bool gated);
/// `pattern` with the number `expert` instead of {e}.
std::string gguf_with_expert(std::string_view pattern, std::uint64_t expert);
/// The number of the layer in llama.cpp's `name`, as it is spelled; a view of it; empty: none.
std::string_view gguf_layer_of(std::string_view name);
/// llama.cpp's name of the tensor of `architecture` that transformers calls `name`; empty: none.
std::string gguf_name_of(const GgufArchitecture& architecture, std::string_view name);

/// Whether llama.cpp's tensor `name` of `dimensions` dimensions is a matrix that may be quantised,
/// or of another type than F32.
bool is_gguf_matrix(std::string_view name, std::size_t dimensions);

/// The gate of an encoder of T5, if it has gates.
inline constexpr const char* kGgufEncoderGate = "enc.blk.0.ffn_gate.weight";
/// A tensor that the config has instead: what divides the angles of all texts.
inline constexpr std::string_view kGgufFrequencies = "rope_freqs.weight";
/// The same for long texts alone.
inline constexpr std::string_view kGgufLongFactors = "rope_factors_long.weight";
/// The same for short texts alone.
inline constexpr std::string_view kGgufShortFactors = "rope_factors_short.weight";

}  // namespace masque::store
