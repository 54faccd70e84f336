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

/// Returns the folder of the model that was fine-tuned at `length`, next to the folder `model` of
/// the trained one: "MODEL-finetuned-LENGTH".
std::string finetuned_model(const std::string& model, Index length);

/// Returns the lengths of `request` at which a trained model of `design` is scored before
/// fine-tuning: those with at most position_count() tokens.
std::vector<Index> scored_lengths(const LengthRequest& request, const train::DesignRecipe& design);

/// Scores `network`, which must be prepared, on every `every`-th example of `subject` at `length`,
/// from the first on. `window` is LengthRow::window. The row's arm, seed and `finetuned` keep their
/// defaults. Throws Interrupted.
LengthRow score_at(const LengthSubject& subject, train::Network<float>& network, Index window,
                   Index length, Index every = 1);

/// Returns how a fine-tuning trains: as the trainer of `options`, with the schedule of
/// `finetuning`.
train::TrainerOptions finetuning_options(const train::RunOptions& options,
                                         const Finetuning& finetuning);

/// Trains the arm number `arm` of `request`, whose model and seed are in `options`, and scores it
/// as requested. `arm` and `seed`, the seed of `options`, go into the rows and into notes. Writes
/// to `files`. Returns the rows, sorted by fine-tuning, window and length; they do not depend on
/// interruptions; the checkpoint is kept.
/// Fine-tunings have no checkpoint: after an interruption they begin again. Throws InputError for a
/// loss that is not finite and for the checkpoint of another model; Interrupted, with the
/// checkpoint written.
std::vector<LengthRow> train_cell(const LengthRequest& request, const train::RunOptions& options,
                                  std::size_t arm, std::uint64_t seed, const CellFiles& files);

}  // namespace masque::length
