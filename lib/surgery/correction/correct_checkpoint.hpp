// The job of `embed-fix mlm-correct`: corrects a checkpoint on disk and reports what changed.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "surgery/correction/correction_settings.hpp"
#include "surgery/correction/mlm_correction.hpp"
#include "surgery/edit/verify_checkpoint.hpp"
#include "surgery/rows/embedding_table.hpp"

namespace masque::surgery {

/// What was done, or would be with dry_run.
struct CorrectionReport {
  std::string family;            ///< empty if unknown
  std::string tensor;            ///< the input table
  DType dtype = DType::kF32;     ///< of the input table
  Shape shape;                   ///< [rows, hidden_size] of the input table
  MlmCorrection correction;      ///< the one that was applied, or undone by an inverse
  bool inverse = false;          ///< CorrectionRequest::inverse
  RowMoves moves;                ///< of all rows of the input table that are not kept
  std::string min_cosine_token;  ///< of row moves.min_cosine_row; empty if it has none
  /// The head of the input; kTied if it was unknown and CorrectionRequest::tied was given.
  HeadState head = HeadState::kNone;
  std::vector<std::string> added_tensors;    ///< the head's own, when it was untied
  std::vector<std::string> changed_tensors;  ///< the input table, then a head that is a copy of it
  std::vector<std::string> notes;            ///< for people: what was decided and why
  bool learned_without_mask = false;         ///< by its training record; a note says so
  std::optional<VerifyResult> verified;      ///< with CorrectionRequest::verify
};

/// Corrects `in` into `out` as `request` says: a file into a file, a folder (or index) into a
/// folder with every other file copied. Tables are computed in double and rounded once; every other
/// tensor is copied bit for bit. Memory: a few MiB a thread, whatever the size of the checkpoint.
/// In place, `out` is ignored, and `in` changes completely or not at all (see edit_in_place);
/// untying is refused, because it adds tensors.
///
/// Throws UsageError for contradicting options, InputError if the data does not allow the
/// correction (already corrected, no [MASK], tied and refused, output exists, disk full …); then
/// `out`, or `in` in place, is unchanged.
CorrectionReport correct_checkpoint(const std::string& in, const std::string& out,
                                    const CorrectionRequest& request);

}  // namespace masque::surgery
