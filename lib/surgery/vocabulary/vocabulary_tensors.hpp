// Which tensors of a checkpoint have a row for every id, and their change when the ids change.
#pragma once

#include <string>
#include <vector>

#include "surgery/edit/checkpoint_edit.hpp"
#include "surgery/rows/embedding_table.hpp"
#include "surgery/rows/row_init.hpp"
#include "surgery/rows/token_names.hpp"

namespace masque::surgery {

/// A stored tensor with one row (or number) per id.
struct VocabularyTensor {
  const store::TensorInfo* tensor = nullptr;  ///< into the checkpoint
  /// Whose new rows it gets: itself, or the tensor that it is a tied copy of.
  const store::TensorInfo* source = nullptr;
  bool is_slot = false;  ///< an optimizer's, of another one: its new rows are zero
};

/// The input table of `table` first, then what the family's names tell of `checkpoint`: an output
/// head's matrix, stored as its own or as a copy, and its biases under all names; then the slots of
/// an optimizer next to any of these. The table alone if the family is unknown. Reads weights only
/// to compare a bias with its second name. Throws InputError if one of them has other rows than the
/// table, or a type that cannot be computed with.
std::vector<VocabularyTensor> vocabulary_tensors(const store::Checkpoint& checkpoint,
                                                 const EmbeddingTable& table);

/// Notes for people about `tensors`, those of vocabulary_tensors() for `table` of `checkpoint`:
/// what stays tied, what has rows of its own, which other tensors have as many rows and stay as
/// they are.
std::vector<std::string> vocabulary_notes(const store::Checkpoint& checkpoint,
                                          const EmbeddingTable& table,
                                          const std::vector<VocabularyTensor>& tensors);

/// Gives `tensors` the rows of `context.change`, of which the new ones are `rows`. Whatever
/// `context` refers to must outlive `edit`. Does nothing for a change that keeps all rows in place.
void change_vocabulary_tensors(CheckpointEdit& edit, const std::vector<VocabularyTensor>& tensors,
                               const RowInitContext& context, const NewRows& rows);

/// Whether with `change` each of `rows` rows stays where it is, and none is added.
bool keeps_rows(const VocabularyChange& change, std::uint64_t rows);

/// The mark of a correction (surgery/correction/mlm_correction.hpp) with the rows that it names
/// renumbered; for the mean of used rows, also with the digest of these rows in their new order.
/// `table` is the input table of the checkpoint of `edit`, `before` are the names of its rows
/// before `change`. Does nothing without a mark. Returns notes: which marks the inverse of a
/// correction cannot follow any more. Throws InputError if a row that it needs is gone.
std::vector<std::string> renumber_correction_mark(CheckpointEdit& edit,
                                                  const store::TensorInfo& table,
                                                  const TokenNames& before,
                                                  const VocabularyChange& change);

}  // namespace masque::surgery
