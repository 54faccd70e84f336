// Finds the token embeddings of a checkpoint, and how its output head relates to them.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "model/family_names.hpp"
#include "store/checkpoint.hpp"
#include "store/config.hpp"
#include "store/names/named_tensors.hpp"

namespace masque::surgery {

/// The note about a head that is tied and stays so.
inline constexpr const char* kTiedHeadNote =
    "the output head stays tied to the input table and changes with it, and so do the "
    "log-probabilities of all tokens";

/// How the output matrix of a checkpoint relates to its input table.
enum class HeadState {
  kNone,     ///< no language-model head
  kTied,     ///< the head uses the input table; nothing of its own is stored
  kCopy,     ///< stored as well, with the same values, and tied by the config
  kOwn,      ///< a matrix of its own
  kMissing,  ///< the config says untied, but no matrix is stored
  kUnknown,  ///< it cannot be determined: no known family, or nothing that speaks for or against a
             ///< head
};

/// The token embeddings of a checkpoint. Pointers to tensors are into the checkpoint, which must
/// outlive this; `family` points to a static table or to `of_config`.
struct EmbeddingTable {
  const model::FamilyNames* family = nullptr;           ///< nullptr if unknown
  std::shared_ptr<const model::FamilyNames> of_config;  ///< owns `family` if it is the config's own
  const store::TensorInfo* input = nullptr;             ///< the table, [rows, hidden_size]
  HeadState head = HeadState::kNone;  ///< how the output matrix relates to the table
  std::string decoder_weight;         ///< the head's matrix, stored or not; empty without a head
  /// Tensors that an untied head needs and the checkpoint lacks: name, source.
  std::vector<std::pair<std::string, std::string>> missing_copies;
  bool config_tied = true;    ///< FamilyNames::tie_field, absent means true
  store::NamedTensors names;  ///< the checkpoint's tensors by the names of the family
  std::string prefix;         ///< the prefix of tensor names here: the family's, or none
  /// False: readers of this layout would not look for a head's own matrix.
  bool can_untie = true;

  /// Rows of the table, with those that have no token.
  std::uint64_t rows() const { return input->shape[0]; }
  /// Columns of the table: the size of an embedding.
  std::uint64_t width() const { return input->shape[1]; }
  /// FamilyNames::tie_field; of an unknown family the usual one.
  std::string tie_field() const {
    return family == nullptr ? model::FamilyNames().tie_field : family->tie_field;
  }
};

/// Finds the table of `checkpoint`, under the names of transformers, TensorFlow or llama.cpp: the
/// tensor `tensor` if given, else by the family of `config`, else by names. Throws InputError if
/// there is none, or if it is no matrix of F16, BF16, F32 or F64. Reads weights only to compare a
/// stored head with the table.
EmbeddingTable find_embedding_table(const store::Checkpoint& checkpoint,
                                    const std::optional<store::ModelConfig>& config,
                                    const std::optional<std::string>& tensor);

/// A tensor of a family's language model and its state in the checkpoint.
struct TableRole {
  const char* role;  ///< "input", "position", "segment", "decoder", "output_bias"
  std::string name;  ///< as the file has or would have it
  const store::TensorInfo* tensor = nullptr;  ///< nullptr if it is not stored
  const char* state;                          ///< "stored", "tied", "missing", "opaque"
};

/// The tensors of the table's family with their roles; only the input table if the family is
/// unknown.
std::vector<TableRole> table_roles(const EmbeddingTable& table);

/// The slots in `checkpoint` that an optimizer keeps next to `tensor` under TensorFlow's names
/// (is_slot_of: NAME/adam_m …). Pointers are into the checkpoint. Cost: all its tensors.
std::vector<const store::TensorInfo*> optimizer_slots(const store::Checkpoint& checkpoint,
                                                      const store::TensorInfo& tensor);

/// Throws InputError if `checkpoint` stores further copies of `table` (T5's), which a change of the
/// table's values alone would not reach. Compares names and shapes, not values.
void check_one_table(const store::Checkpoint& checkpoint, const EmbeddingTable& table);

/// Throws InputError if the head of `table` cannot be untied in the layout of `checkpoint`: GGUF,
/// TensorFlow's names, or families whose readers look for no matrix of the head.
void check_can_untie(const store::Checkpoint& checkpoint, const EmbeddingTable& table);

/// Throws InputError unless `tensor` of `checkpoint` is a table: two dimensions, not empty, of F16,
/// BF16, F32 or F64.
void check_table(const store::Checkpoint& checkpoint, const store::TensorInfo& tensor);

}  // namespace masque::surgery
