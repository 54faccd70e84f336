// The output head of a checkpoint and its tie to the input table.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "surgery/edit/edit_report.hpp"

namespace masque::surgery {

/// The tensors that untying adds: the head's matrix as the stored `table`, and what goes with it
/// (EmbeddingTable::missing_copies); without the matrix if it is stored. Their sources copy from
/// the files of `checkpoint`, which must outlive them.
std::vector<store::OutputTensor> head_tensors(const store::Checkpoint& checkpoint,
                                              const EmbeddingTable& table);

/// Gives the head its own tensors, sets tie_word_embeddings to false in config.json, and adds to
/// `notes`. A replacement of `table` in `edit` does not change the head. Throws InputError as
/// check_can_untie().
void untie_head(CheckpointEdit& edit, const EmbeddingTable& table, std::vector<std::string>& notes);

/// What a user asks of tie_checkpoint().
struct TieRequest : EditRequest {
  bool drop = false;  ///< removes also a head that differs
};

/// What tie_checkpoint() did, or would do with dry_run.
struct TieReport : EditReport {
  std::string head;                  ///< the head's matrix
  std::uint64_t rows_different = 0;  ///< from the table
  double largest_difference = 0;     ///< max |table − head|; infinite instead of NaN
};

/// Writes `in` to `out` without the matrix of its head, so that the head uses the input table. If
/// an untied head read a second copy of the bias, its values become the bias. A head that is tied
/// already gives a copy. Throws InputError if the matrix differs from the table (without `drop` in
/// `request`) or has another shape, if there is no head, if a tied head of the family would compute
/// another function, and as find_embedding_table() and finish_edit().
TieReport tie_checkpoint(const std::string& in, const std::string& out, const TieRequest& request);

/// What untie_checkpoint() did, or would do with dry_run.
struct UntieReport : EditReport {
  std::string head;  ///< the head's matrix
};

/// Writes `in` to `out` as `request` says, with a separate matrix for the head, equal to the input
/// table. A head that is untied already gives a copy. Throws InputError if there is no head, and as
/// check_can_untie(), find_embedding_table() and finish_edit().
UntieReport untie_checkpoint(const std::string& in, const std::string& out,
                             const EditRequest& request);

}  // namespace masque::surgery
