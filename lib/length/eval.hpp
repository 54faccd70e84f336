// A trained model at lengths that it was not trained for: scored, and its attention measured, under
// several treatments.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "evaluate/statistics/summary.hpp"
#include "length/stream.hpp"
#include "length/treatment.hpp"
#include "model/treatable_model.hpp"
#include "records/corruption.hpp"

namespace masque::length {

/// Returns the objective that the head and streams of `model` are made for: "mlm", "tta" or "clm".
/// Throws InputError for models without a head that predicts tokens in one pass of one stream.
std::string length_objective(const model::TreatableModel& model);

/// Throws UsageError with the reason if `objective` has no scored_kind(), or if `model` cannot do
/// it: it needs another head, or it would read what it predicts. Throws as length_objective.
void check_length_objective(const std::string& objective, const model::TreatableModel& model);

/// The treatments and lengths of an evaluation.
struct TreatmentGrid {
  const model::TreatableModel* model = nullptr;  ///< must stay
  std::vector<LengthTreatment> treatments;       ///< at least one; their positions must not be null
  std::vector<Index> lengths;                    ///< tokens: those of the stream, at least one
  Index trained = 0;  ///< tokens of the longest sequence of training; > 0
  kernel::Precision precision = kernel::Precision::kF32;  ///< of the model's computation
  Index batch_tokens = 8192;             ///< tokens that run together, unless one block is longer
  std::optional<TokenId> mask_token_id;  ///< of the tokenizer: what a T-TA's queries start from
  /// Of the tokenizer: where words begin, for masks that leave words to each text.
  records::TokenTable tokens = {};
  /// Gets a line for the user about a treatment that does not reach a length; must be set.
  std::function<void(const std::string&)> note;

  /// Returns the options with which a model is opened for `treatment`: without its positions, which
  /// TreatableModel::open takes, and without its window, which treated_block() applies.
  model::ModelOptions options(const LengthTreatment& treatment) const;
};

/// One treatment at one length.
struct TreatedLength {
  std::size_t treatment = 0;  ///< index in TreatmentGrid::treatments
  Index length = 0;           ///< tokens of a block
};

/// Calls use(cell, model) for all cells of `grid` that the model can read, with the model under the
/// treatment; treatments in order, lengths as listed. The reference to the model is valid during
/// the call only. Cost, besides `use`: the model is opened once a cell. Everything is checked
/// before the first call. Throws UsageError for a treatment that does not fit the model, and if no
/// cell remains; InputError as Model::run.
void for_each_cell(const TreatmentGrid& grid,
                   const std::function<void(const TreatedLength&, const model::Model&)>& use);

/// Returns `block` as the treatment number `treatment` of `grid` reads it: with its window, or with
/// the mask that depends on the block's words.
train::Example treated_block(const train::Example& block, const TreatmentGrid& grid,
                             std::size_t treatment);

/// One row of the result. Losses in nats. The standard errors treat parts of the text, not tokens,
/// as independent: parts with as many tokens as the longest sequence, the same for every length and
/// treatment.
struct LengthScore {
  TreatedLength cell;            ///< the treatment and the length
  evaluate::RatioMean loss;      ///< nats a target
  evaluate::RatioMean accuracy;  ///< share of targets whose likeliest token is right
};

/// Scores the targets of `stream` in every cell of `grid`; `objective` is the stream's. Cost: the
/// tokens of the blocks of each length, the head twice at every target. Memory: a batch, and the
/// model twice while it is packed. The same numbers for any number of threads and any
/// `batch_tokens`. Throws as for_each_cell; UsageError for masks that let a position read what it
/// predicts; Interrupted.
std::vector<LengthScore> score_lengths(const TreatmentGrid& grid, const LengthStream& stream,
                                       const std::string& objective);

}  // namespace masque::length
