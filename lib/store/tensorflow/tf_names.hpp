// Names of TensorFlow variables, as Google's BERT, its relatives and bert4keras have them, next to
// those of transformers. One file per table under store/tensorflow/family/ registers itself.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "store/checkpoint.hpp"
#include "store/config.hpp"
#include "store/name_plan.hpp"

namespace masque::store {

/// What a row of a table names.
enum class TfKind {
  kDense,   ///< kernel [in, out] next to weight [out, in], and bias
  kNorm,    ///< gamma and beta next to weight and bias
  kTable,   ///< NAME next to NAME.weight
  kTensor,  ///< a tensor, as it is
};

/// Two names, without the ends that the kind gives them. "{l}" stands for a number; the first one
/// on one side is the first on the other.
struct TfRow {
  std::string tf;  ///< in TensorFlow: "bert/encoder/layer_{l}/output/dense"
  std::string hf;  ///< in transformers: "bert.encoder.layer.{l}.output.dense"
  TfKind kind;     ///< which ends the two names get
};

/// One way to name the tensors of a model in TensorFlow.
struct TfFamily {
  std::string_view name;                      ///< of the table: "bert"
  std::vector<std::string_view> model_types;  ///< values of model_type whose tensors it names
  std::string_view prefix;                    ///< of the base model in transformers: "bert."
  std::string_view config;                    ///< the file that goes with it: "bert_config.json"
  std::string_view decoder;                   ///< the head's matrix in transformers; has no TF name
  std::string_view decoder_bias;              ///< a second name of the bias; may be empty
  std::string_view bias;                      ///< the first name of the bias; may be empty
  std::vector<std::string_view> heads;        ///< in transformers; one there: written by this table
  std::vector<TfRow> rows;                    ///< the first that fits gives a name
  /// Whether a checkpoint has these names.
  bool (*is_named)(const Checkpoint& checkpoint, const std::optional<ModelConfig>& config);
  /// What a config without model_type lacks: names and JSON values, the model_type first.
  std::vector<std::pair<std::string, std::string>> (*fields)(const Checkpoint& checkpoint);
  bool is_written = true;  ///< whether tensors get these names, or are only read by them
  /// Whether the file holds another model of the same vocabulary, too; nullptr: never.
  bool (*holds_two)(const Checkpoint& checkpoint) = nullptr;
};

/// All tables, sorted by name.
std::span<const TfFamily* const> tf_families();

/// Adds a table at program start.
struct TfFamilyRegistration {
  /// Adds `family`, which must live as long as the process.
  explicit TfFamilyRegistration(const TfFamily& family);
};

/// The table whose names the tensors of `checkpoint` have, with its `config` if there is one;
/// nullptr if they have none of TensorFlow. It lives for ever.
const TfFamily* find_tf_family(const Checkpoint& checkpoint,
                               const std::optional<ModelConfig>& config);

/// Whether `checkpoint` holds two models of one vocabulary under TensorFlow's names.
bool holds_two_models(const Checkpoint& checkpoint);

/// The name in transformers of the tensor `tf` by the table of `family`, and whether the matrix is
/// transposed; nothing if the table has none.
std::optional<NewName> hf_name(const TfFamily& family, std::string_view tf);
/// The name in TensorFlow of the tensor `hf` by the table of `family`, and whether the matrix is
/// transposed; nothing if the table has none. The base model's prefix may be missing.
std::optional<NewName> tf_name(const TfFamily& family, std::string_view hf);

/// Whether `name` is one of an optimizer: a slot of a variable (bias/adam_m), global_step …
bool is_optimizer_state(std::string_view name);
/// Whether the tensor `slot` is a slot of `variable`: it has its shape, and its name and one part
/// more (NAME/adam_m, NAME/RMSProp_1, NAME/ExponentialMovingAverage). Optimizers call it as they
/// like.
bool is_slot_of(const TensorInfo& slot, const TensorInfo& variable);
/// Whether `tensor`, one of `checkpoint`, is of an optimizer: by its name, or as a slot of another
/// one.
bool is_optimizer_state(const Checkpoint& checkpoint, const TensorInfo& tensor);

/// Rows of BERT's embeddings, layers and pooler under `tf` ("bert/") and `hf` ("bert.").
std::vector<TfRow> tf_encoder_rows(const std::string& tf, const std::string& hf);
/// Rows of the masked-LM head and next-sentence prediction of BERT.
std::vector<TfRow> tf_bert_head_rows();
/// Whether `checkpoint` has a tensor called `name`, with a DType.
bool has_tensor(const Checkpoint& checkpoint, std::string_view name);
/// Fields of a config, names and JSON values: `model_type`, `architectures` with the one
/// `architecture`, and tie_word_embeddings as true.
std::vector<std::pair<std::string, std::string>> tf_fields(std::string_view model_type,
                                                           std::string_view architecture);

}  // namespace masque::store
