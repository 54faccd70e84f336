// What a correction will do, from the options, the marker, the tokenizer and the config.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "store/checkpoint.hpp"
#include "store/checkpoint_writer.hpp"
#include "store/config.hpp"
#include "surgery/correction/mlm_correction.hpp"
#include "surgery/rows/embedding_table.hpp"
#include "surgery/rows/token_names.hpp"

namespace masque::surgery {

// The request of a correction.

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

// What follows from it.

/// Everything that mlm_map needs, settled.
struct CorrectionSettings {
  MlmCorrection correction;        ///< to apply, or to undo
  std::vector<double> weights;     ///< of the mean, [rows], sum 1; empty: all rows alike
  std::string marks;               ///< for the metadata of the output, joined by "; "; empty: none
  std::vector<std::string> notes;  ///< for people: which rows are kept, what the rates come from
  /// The model's training record says that it never read [MASK]; a note says so.
  bool learned_without_mask = false;
};

/// The corrections of `table` of `checkpoint` by its mark, the last one last; empty without a mark.
/// Throws InputError for a mark that is none.
std::vector<MlmCorrection> correction_marks(const store::Checkpoint& checkpoint,
                                            const store::TensorInfo& table);

/// The corrections of the input table of the checkpoint at `path`. Reads no weights. Throws
/// InputError if there is no checkpoint or no such table, and as correction_marks().
std::vector<MlmCorrection> corrections_of(const std::string& path);

/// Settles a request for `table` of `checkpoint`, with `names` of its rows. Without a tokenizer (no
/// `names`) the special tokens are those that `config` has ids of. Shares that the request lacks
/// are those of the model's TrainingRecord, else of MlmRates; a note says so of the rate. Reads no
/// weights.
///
/// Throws InputError without a rate for a model whose record has an objective of no single rate.
/// Throws UsageError for shares that check_rates() refuses, for shares or special tokens that
/// contradict the marker to invert, and for an unknown mean. Throws InputError for a checkpoint
/// with a marker (without `again`), for an inverse of one without a marker or with another mean,
/// for an unknown [MASK], for ids beyond the table, and as used_weights() and frequency_weights().
CorrectionSettings correction_settings(const CorrectionRequest& request,
                                       const store::Checkpoint& checkpoint,
                                       const std::optional<store::ModelConfig>& config,
                                       const TokenNames& names, const EmbeddingTable& table);

// What lm-train's own record says of how a model was trained.

/// The masking of a training run, from the metadata of training.safetensors in a model's folder.
struct TrainingRecord {
  /// What the inputs of the objective look like.
  enum class Inputs {
    kMasked,       ///< with [MASK], by one rate and split
    kWithoutMask,  ///< [MASK] is never among them
    kOther,        ///< with [MASK] by several rules, or unknown
  };
  std::string objective;            ///< "mlm"
  Inputs inputs = Inputs::kOther;   ///< of the objective
  std::optional<MlmRates> rates{};  ///< with kMasked; of a range of rates the mean
  /// Selected tokens became similar ones instead of [MASK]; then inputs is kWithoutMask.
  bool replaces_by_similar = false;

  /// The record next to the weights of `checkpoint`, or for the folder `generator` of a run of two
  /// networks (ELECTRA) the run's record, one folder up, with the shares of the generator's inputs;
  /// nothing without the file, or if it is of a training that names no objective (a classifier).
  /// Throws InputError if the file is malformed.
  static std::optional<TrainingRecord> of(const store::Checkpoint& checkpoint);
  /// The facts of a state that of() reads: what goes on with a model whose state is another one.
  static std::span<const std::string_view> facts();
};

}  // namespace masque::surgery
