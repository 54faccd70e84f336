// One design with one seed of a length run: trained, fine-tuned, scored.
#pragma once

#include <string>
#include <vector>

#include "length/request.hpp"

namespace masque::length {

/// Where a cell leaves files besides its rows.
struct CellFiles {
  /// Written once a minute, at a signal and when training is done; gone on with if it is there.
  std::string checkpoint;
  std::string model;  ///< its folder; empty: it is not kept
};
/// The folder of the fine-tuned one next to it.
std::string finetuned_model(const std::string& model, Index length);

/// Those of the request's lengths at which the trained model is scored before it is fine-tuned:
/// all, but for a table of learned positions, which has random rows after the longest sequence of
/// training.
std::vector<Index> scored_lengths(const LengthRequest& request, const train::DesignRecipe& design);

/// One of `every` examples of a length. `window` as LengthRow has it.
LengthRow score_at(const LengthSubject& subject, train::Network<float>& network, Index window,
                   Index length, Index every = 1);

/// How a fine-tuning trains: as `options` do, but for its schedule.
train::TrainerOptions finetuning_options(const train::RunOptions& options,
                                         const Finetuning& finetuning);

/// Trains arm and seed with their options and scores them as the request says. The rows do not
/// depend on where it was interrupted; the checkpoint stays. Throws InputError for a loss that is
/// not finite; Interrupted, with the checkpoint written.
std::vector<LengthRow> train_cell(const LengthRequest& request, const train::RunOptions& options,
                                  std::size_t arm, std::uint64_t seed, const CellFiles& files);

}  // namespace masque::length
