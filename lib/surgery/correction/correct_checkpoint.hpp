// The job of `embed-fix mlm-correct`: from a checkpoint on disk to a corrected one, with a report.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "store/checkpoint_writer.hpp"
#include "surgery/correction/mlm_correction.hpp"
#include "surgery/edit/verify_checkpoint.hpp"
#include "surgery/rows/embedding_table.hpp"

namespace masque {

/// What to do when the output head uses the input table.
enum class TiedPolicy {
  kUntie,   ///< the head gets its own copy of the table as it was
  kKeep,    ///< correct the shared table: the head changes too
  kRefuse,  ///< InputError
};

/// What to do with the rows of special tokens ([CLS] [SEP] [PAD] [MASK], begin and end of text).
enum class SpecialPolicy { kKeep, kCorrect };

struct CorrectionRequest {
  /// Shares that were given; absent ones are those of BERT, or of the marker when inverting.
  std::optional<double> rate;
  std::optional<double> mask;
  std::optional<double> keep;
  std::optional<double> random;
  std::optional<std::string> mask_token;    ///< token or id
  std::vector<std::string> special_tokens;  ///< tokens or ids, added to those of the tokenizer
  std::optional<std::string> mean;          ///< "vocab", "used" or "freq:FILE"
  SpecialPolicy special = SpecialPolicy::kKeep;
  std::optional<TiedPolicy> tied;  ///< absent: untie, or refuse where it cannot be told
  std::optional<std::string> tensor;
  bool inverse = false;
  bool again = false;
  bool dry_run = false;
  bool verify = false;
  bool in_place = false;    ///< changes the input itself
  double wait_seconds = 0;  ///< in place: for other processes that change it
  WriteOptions write;
};

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

}  // namespace masque
