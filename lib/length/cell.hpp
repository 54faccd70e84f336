// One design with one seed of a length run: trained, fine-tuned, scored.
#pragma once

#include <string>
#include <vector>

#include "length/request.hpp"

namespace masque::length {

/// Where a cell leaves files besides its rows.
struct CellFiles {
  /// Checkpoint: written once a minute, at a signal and when training is done. A run continues from
  /// it if it exists.
  std::string checkpoint;
  std::string model;  ///< folder of the model; empty: the model is not kept
};
/// The folder of the fine-tuned model beside it.
std::string finetuned_model(const std::string& model, Index length);

/// The lengths of the request at which the trained model is scored before fine-tuning: all of them,
/// except for a table of learned positions, which has random rows beyond the longest sequence of
/// training.
std::vector<Index> scored_lengths(const LengthRequest& request, const train::DesignRecipe& design);

/// One of `every` examples of a length. `window` as LengthRow has it.
LengthRow score_at(const LengthSubject& subject, train::Network<float>& network, Index window,
                   Index length, Index every = 1);

/// How a fine-tuning trains: as `options`, with another schedule.
train::TrainerOptions finetuning_options(const train::RunOptions& options,
                                         const Finetuning& finetuning);

/// Trains one arm with one seed and scores it as requested. The rows do not depend on
/// interruptions; the checkpoint is kept. Throws InputError for a loss that is not finite;
/// Interrupted, with the checkpoint written.
std::vector<LengthRow> train_cell(const LengthRequest& request, const train::RunOptions& options,
                                  std::size_t arm, std::uint64_t seed, const CellFiles& files);

}  // namespace masque::length
