// The output head of a checkpoint and its tie to the input table.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "surgery/edit/edit_report.hpp"

namespace masque::surgery {

/// The tensors that untying adds: the head's matrix as the stored table, and what goes with it.
std::vector<store::OutputTensor> head_tensors(const store::Checkpoint& checkpoint,
                                              const EmbeddingTable& table);

/// Gives the head its own tensors, sets tie_word_embeddings to false in config.json, and adds
/// notes. A replacement of the table in `edit` does not change the head.
void untie_head(CheckpointEdit& edit, const EmbeddingTable& table, std::vector<std::string>& notes);

struct TieRequest : EditRequest {
  bool drop = false;  ///< also a head that differs
};

struct TieReport : EditReport {
  std::string head;                  ///< the head's matrix
  std::uint64_t rows_different = 0;  ///< from the table
  double largest_difference = 0;
};

/// Writes `in` without the matrix of its head, so that the head uses the input table. If an untied
/// head read a second copy of the bias, its values become the bias. Throws InputError if the matrix
/// differs from the table (without `drop`), or if there is no head.
TieReport tie_checkpoint(const std::string& in, const std::string& out, const TieRequest& request);

struct UntieReport : EditReport {
  std::string head;
};

/// Writes `in` with a separate matrix for the head, equal to the input table. Throws InputError
/// if there is no head.
UntieReport untie_checkpoint(const std::string& in, const std::string& out,
                             const EditRequest& request);

}  // namespace masque::surgery
