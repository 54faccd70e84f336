// Model families as data: from config.json to a design and a table of tensor names. One file per
// family under model/family/ registers itself; nothing else knows a tensor name.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/design.hpp"
#include "model/family_config.hpp"
#include "model/role.hpp"
#include "tensor/dtype.hpp"

namespace masque::model {

/// How a tensor lies in the file.
enum class TensorLayout {
  kNone,         ///< (out, in)
  kTransposed,   ///< (in, out)
  kHeadTriples,  ///< (heads · 3 · head size, in): query, key and value of each head in turn
  kNextRow,      ///< a vector, the next row of its place: GAU's γ and β
};

/// Which tensors a row names.
enum class Parts {
  kBoth,        ///< NAME.weight and NAME.bias
  kWeight,      ///< NAME.weight
  kTensor,      ///< NAME is the weight
  kBiasTensor,  ///< NAME is the bias
};

/// One row of a family's table.
struct TensorRow {
  /// A leading "~" stands for the base model's prefix, "{l}" for the number of a layer (then there
  /// is one row for each). Further spellings stand after "|"; the first that is there counts, the
  /// last is written.
  std::string name;
  /// What it is for; several: stacked by rows in this order.
  std::vector<Role> roles;
  Parts parts = Parts::kBoth;
  TensorLayout turn = TensorLayout::kNone;
  /// The weight's shape in the file; empty: (out, in), or (in, out) of a transposed one.
  Shape shape = {};
  std::optional<Index> layer = {};  ///< of ModelWeights::layers, for names without "{l}"
  Index part = 0;                   ///< of roles that have several tensors
};

/// A head that a checkpoint of the family may hold.
struct HeadPlan {
  HeadDesign design;
  std::string what;      ///< "masked-LM head"
  std::string evidence;  ///< the head is there if one of these tensors is; empty: it always is
  std::string decoder;   ///< the vocabulary matrix; may be absent if it is tied
  std::vector<TensorRow> rows;
};

/// Tensors that are left out on purpose.
struct Skipped {
  std::string prefix;  ///< of their names
  std::string what;    ///< "the decoder"
};

/// A model as config.json describes it.
struct ModelPlan {
  Design design;
  std::string prefix;  ///< of the base model's tensors, "bert."; exports may lack it
  std::vector<TensorRow> rows;
  std::vector<HeadPlan> heads;  ///< the first that is there counts
  std::vector<Skipped> skipped;
  std::vector<std::string> buffers;  ///< ends of names of tensors that hold no weights
};

/// A family. Strings live as long as the program.
struct Family {
  std::string_view name;                      ///< stem: "bert"
  std::vector<std::string_view> model_types;  ///< values of config.json's model_type
  std::vector<std::string_view> classes;      ///< class names begin so: "Bert" of BertForMaskedLM
  std::string_view loads;                     ///< one line: which checkpoints, which heads
  /// Throws InputError for options that the engine does not have.
  ModelPlan (*plan)(const FamilyConfig& config);
};

/// All registered families, sorted by name.
std::span<const Family* const> families();

/// The family with this name or model_type; nullptr if none.
const Family* find_family(std::string_view name);

/// The family of a config: `wanted` if not empty, else by model_type, else by
/// architectures. Throws InputError, or UsageError for a wrong `wanted`, listing what there is.
const Family& choose_family(const store::ModelConfig& config, std::string_view wanted);

struct FamilyRegistration {
  explicit FamilyRegistration(const Family& family);
};

}  // namespace masque::model
