// The job of `embed-fix mlm-correct`: from a checkpoint on disk to a corrected one, with a report.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "surgery/correction/correction_request.hpp"
#include "surgery/correction/mlm_correction.hpp"
#include "surgery/edit/verify_checkpoint.hpp"
#include "surgery/rows/embedding_table.hpp"

namespace masque::surgery {

/// What was done, or would be with dry_run.
struct CorrectionReport {
  std::string family;  ///< empty if unknown
  std::string tensor;
  DType dtype = DType::kF32;
  Shape shape;
  MlmCorrection correction;
  bool inverse = false;
  RowMoves moves;
  std::string min_cosine_token;
  HeadState head = HeadState::kNone;
  std::vector<std::string> added_tensors;  ///< the head's own, when it was untied
  std::vector<std::string> changed_tensors;
  std::vector<std::string> notes;  ///< for people: what was decided and why
  std::optional<VerifyResult> verified;
};

/// Corrects `in` into `out`: a file into a file, a folder (or index) into a folder with every other
/// file copied. Tables are computed in double and rounded once; every other tensor is copied bit
/// for bit. Memory: a few MiB a thread, whatever the size of the checkpoint. In place `out` is not
/// looked at, and `in` changes as a whole or not at all (see edit_in_place); untying is refused, as
/// it adds tensors.
///
/// Throws UsageError for contradicting options, InputError for everything that the data says no to
/// (already corrected, no [MASK], tied and refused, output exists, disk full …); `out`, or `in` in
/// place, is then as it was.
CorrectionReport correct_checkpoint(const std::string& in, const std::string& out,
                                    const CorrectionRequest& request);

}  // namespace masque::surgery
