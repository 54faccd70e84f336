// Models into Hugging Face folders: config.json from a design, model.safetensors from its weights.
#pragma once

#include <string>
#include <vector>

#include "model/checkpoint/placed.hpp"
#include "model/weights.hpp"
#include "store/checkpoint_writer.hpp"

namespace masque::model {

/// What config.json says of training, for those who train on.
struct TrainingConfig {
  double initializer_range = 0.02;  ///< standard deviation of initial weights
  double hidden_dropout = 0;        ///< probability, of states
  double attention_dropout = 0;     ///< probability, of attention weights
  /// The token in front of each sequence where the tokenizer's template has none (kBeginToken).
  std::optional<TokenId> begin_token;
};

/// Its key in config.json: what continues a text puts this token in front.
inline constexpr const char* kBeginToken = "begin_token_id";
/// The text `config` of a config.json with the begin token of `training`; without one, without that
/// key.
std::string with_begin_token(const std::string& config, const TrainingConfig& training);

/// A design as its family spells it.
struct SavedDesign {
  std::string family;  ///< name of the family
  std::string config;  ///< text of config.json
  ModelPlan plan;      ///< what the family makes of `config`, with the head of the design
};

/// The design `design`, with `training`, as the first family that has it writes it: bert, roformer,
/// gpt2, electra, gau_alpha, tta, else masque. `same_design` holds for the design of its plan.
/// Throws UsageError if no family has it; InputError or UsageError if masque refuses it, by name.
SavedDesign saved_design(const Design& design, const TrainingConfig& training = {});

/// A tensor to write: its bytes come from the weights, which must live as long.
struct NamedTensor {
  PlacedTensor placed;  ///< its shape in the file and its parts
  std::string name;     ///< under which it is written
  /// Fills `out` with elements [begin, begin + out.size()) of the file's tensor. Thread-safe.
  void read(std::uint64_t begin, std::span<float> out) const;

  /// Values of placed.parts, where the weights have them.
  std::vector<MatrixView<const float>> parts;
};

/// The tensors of `plan`'s base and of the head that `plan.design` has, sorted by name; the bias of
/// an untied decoder under all its spellings. They point into the memory of `weights`, which the
/// caller keeps. Throws UsageError for a place without data; shapes are those that the design gives
/// (MASQUE_CHECK).
std::vector<NamedTensor> named_tensors(const ModelPlan& plan, ModelWeights<float> weights);

/// The `tensor` as f32 to write; its weights must live until then.
store::OutputTensor output_tensor(NamedTensor tensor);

/// What stands in a model's folder, to be written in a sub-folder of another, say.
struct ModelFiles {
  store::OutputWeights weights;  ///< prefix + "model.safetensors", f32
  store::OutputExtra config;     ///< prefix + "config.json"
};
/// The files of a model of the design `saved`, with names that begin with `prefix`. `weights` must
/// live until they are written. Throws UsageError for a weight that is missing.
ModelFiles model_files(const SavedDesign& saved, const ModelWeights<float>& weights,
                       const std::string& prefix = "");

/// What save_model writes besides the model.
struct SaveOptions {
  TrainingConfig training;                 ///< for config.json
  std::vector<store::OutputExtra> files;   ///< a tokenizer and what else stands there
  std::vector<store::OutputWeights> more;  ///< other files of tensors, the state of training say
  store::WriteOptions write;               ///< how the folder is written
};
/// Writes the folder `path` with config.json, model.safetensors (f32), `options.files` and
/// `options.more`, whole or not at all. `weights` are of the shapes of `design`. Throws InputError
/// if it cannot be written, UsageError for a weight that is missing, and as saved_design.
void save_model(const std::string& path, const Design& design, const ModelWeights<float>& weights,
                const SaveOptions& options = {});
/// Writes the folder `path` in the same way with `files` that are described already;
/// `options.training` is not read.
void save_model(const std::string& path, ModelFiles files, const SaveOptions& options = {});

}  // namespace masque::model
