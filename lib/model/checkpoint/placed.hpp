// A model's tensors as its family's files have them: the rows of a plan, layer by layer. What
// loading, saving and training enumerate.
#pragma once

#include <string>
#include <vector>

#include "model/family.hpp"

namespace masque::model {

/// The part of a tensor that belongs to one place of the model.
struct TensorPart {
  Role role = Role::kWordTable;  ///< with `layer` and `part` the arguments of weight_of()
  Index layer = 0;               ///< index in ModelWeights::layers; 0 for roles of the whole model
  Index part = 0;                ///< number of the tensor, for roles that have several
  Index rows = 0;                ///< rows of the matrix, or elements of the vector
  Index first_row = 0;           ///< first row of the place; not 0 for TensorLayout::kNextRow alone
  Index first_column =
      0;  ///< first column of the place; not 0 for TensorLayout::kNextColumns alone
};

/// One tensor of a file.
struct PlacedTensor {
  std::string names;                           ///< spellings "a|b"; "~" stands for the prefix
  Shape shape;                                 ///< in the file
  TensorLayout layout = TensorLayout::kOutIn;  ///< in the file
  /// The place holds the biases of its roles, else the weights.
  bool bias = false;
  bool vector = false;  ///< a vector in the file: a bias, a weight that is_vector(), or kNext…
  Index rows = 0;       ///< rows of the (out, in) matrix; 1 for vectors
  Index columns = 0;    ///< columns of that matrix, or elements of the vector
  Index groups = 1;     ///< heads of keys of kHeadGroups, parts of kParts
  /// The roles are those of VariantDesign::detector: sizes and layers are its own.
  bool detector = false;
  bool fixed = false;             ///< TensorRow::fixed
  std::vector<TensorPart> parts;  ///< stacked: by rows, of a vector by elements
};

/// The tensors of `row` in a model of `design`: weight, bias or both, one for each layer that has
/// it. Rows of TensorLayout::kNextRow and kNextColumns do not know those before them: `first_row`
/// and `first_column` are 0.
std::vector<PlacedTensor> place_row(const Design& design, const TensorRow& row);

/// Different layers of `design`: elements of ModelWeights::layers.
Index count_layers(const Design& design);

/// All tensors of a model of `plan` with `head` (of `plan.heads`; nullptr: without), the vocabulary
/// matrix included unless it is tied, in the order of the rows.
std::vector<PlacedTensor> placed_tensors(const ModelPlan& plan, const HeadPlan* head);

/// The name under which `tensor` is written: its last spelling, with the prefix of `plan`.
std::string written_name(const ModelPlan& plan, const PlacedTensor& tensor);

/// All names under which `tensor` of `plan` is written, written_name() first: the bias of a decoder
/// that is not tied has each of its spellings, of which transformers reads one and expects the
/// others.
std::vector<std::string> written_names(const ModelPlan& plan, const PlacedTensor& tensor);

/// The `name` with the prefix of `plan` instead of a leading "~".
std::string with_base(const ModelPlan& plan, std::string_view name);

/// The head of `plan` whose design is `head`; nullptr if it has none. Points into `plan`.
const HeadPlan* head_like(const ModelPlan& plan, const HeadDesign& head);

}  // namespace masque::model
