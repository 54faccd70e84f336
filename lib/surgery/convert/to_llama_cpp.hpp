// Models of transformers as files of llama.cpp: its names and metadata, its layouts, its blocks.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "store/config.hpp"
#include "store/weights_writer.hpp"
#include "surgery/convert/convert_values.hpp"
#include "tensor/quantized_block.hpp"

namespace masque::surgery {

/// The types of blocks that are written, for messages: "Q4_0, Q4_K or Q8_0".
std::string written_blocks();

/// Whether llama.cpp has an architecture for models with this `config` that is read here, all of
/// it: an encoder's head is none of its parts.
bool has_llama_cpp_architecture(const std::optional<store::ModelConfig>& config);

/// What the values of a file of llama.cpp become.
struct LlamaCppValues {
  std::optional<DType> dtype;           ///< of matrices; nothing: they keep theirs
  const BlockFormat* blocks = nullptr;  ///< of matrices, instead; nullptr: they are not quantised
  OverflowPolicy overflow = OverflowPolicy::kRefuse;  ///< of values that `dtype` cannot hold
};

/// A model as a file of llama.cpp, from which gguf_config() and gguf_tensors() make the same model
/// again: matrices have the wanted type, vectors and tables of positions and token types F32.
/// Llama's rows are in pairs, Gemma's norms have 1 added (in float), GPT-2's matrices are turned, a
/// tied output is left out. Not copied.
class LlamaCppModel {
 public:
  /// Of `checkpoint` with `config`, which must outlive it; `values` says what becomes of the types.
  /// Throws InputError for a model without an
  /// architecture of llama.cpp, for what its metadata cannot say, and as model::find_tensors.
  LlamaCppModel(const store::Checkpoint& checkpoint, const store::ModelConfig& config,
                const LlamaCppValues& values);
  ~LlamaCppModel();

  /// The file. Sources refer to this object. `notes` gets what to tell users: rows that fill no
  /// block, a missing tokenizer. Throws InputError for a tokenizer that metadata do not describe.
  store::OutputWeights weights(std::vector<std::string>& notes);
  /// How many tensors have another type than in the checkpoint; after weights().
  std::uint64_t converted() const;
  /// What overflowed, after the file was written.
  const Overflow& overflow() const;
  /// Compares the model that the finished file `path` is with this one: Throws InputError that
  /// names the keys of config.json which the metadata cannot say.
  void verify(const std::string& path) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Quantises the matrices of `weights`, those of a file of llama.cpp that is not quantised, from
/// `checkpoint`, as LlamaCppModel does; what overflows goes into `overflow`. Adds to `notes`.
/// Returns how many. Throws InputError for a file with blocks.
std::uint64_t quantise_llama_cpp(const store::Checkpoint& checkpoint, const BlockFormat& blocks,
                                 store::OutputWeights& weights, Overflow& overflow,
                                 std::vector<std::string>& notes);

}  // namespace masque::surgery
