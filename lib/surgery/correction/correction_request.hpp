// The request of a correction.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "store/checkpoint_writer.hpp"

namespace masque::surgery {

/// What to do when the output head uses the input table.
enum class TiedPolicy {
  kUntie,   ///< the head gets its own copy of the old table
  kKeep,    ///< correct the shared table: the head changes too
  kRefuse,  ///< InputError
};

/// What to do with the rows of special tokens ([CLS] [SEP] [PAD] [MASK], begin and end of text):
/// kKeep leaves them unchanged, kCorrect corrects them as every other row.
enum class SpecialPolicy { kKeep, kCorrect };

/// What a user asks of correct_checkpoint(). Absent shares are those of the model's TrainingRecord,
/// else of MlmRates, or of the marker when a correction is undone.
struct CorrectionRequest {
  std::optional<double> rate;               ///< MlmRates::rate
  std::optional<double> mask;               ///< MlmRates::mask
  std::optional<double> keep;               ///< MlmRates::keep
  std::optional<double> random;             ///< MlmRates::random
  std::optional<std::string> mask_token;    ///< token or id; absent: the tokenizer's mask_token
  std::vector<std::string> special_tokens;  ///< tokens or ids, added to those of the tokenizer
  /// "vocab", "used" or "freq:FILE", see MeanKind. Absent: vocab, or used to undo a correction
  /// whose marker says used.
  std::optional<std::string> mean;
  SpecialPolicy special = SpecialPolicy::kKeep;  ///< does not affect `special_tokens`, which stay
  std::optional<TiedPolicy> tied;     ///< absent: untie, or refuse where it cannot be determined
  std::optional<std::string> tensor;  ///< the input table; absent: found by the family's names
  bool inverse = false;               ///< undoes the last correction
  bool again = false;         ///< corrects a corrected table, or inverts one without a marker
  bool dry_run = false;       ///< computes everything and writes nothing
  bool verify = false;        ///< reads the output back before it is final
  bool in_place = false;      ///< changes the input itself
  double wait_seconds = 0;    ///< in place: for other processes that change it
  store::WriteOptions write;  ///< `verify` and `input` are ignored: they are set by the job
};

}  // namespace masque::surgery
