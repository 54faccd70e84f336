// Why deep models are hard to train: what one update changes in the function, all of it and each
// layer alone, and how large the numbers in the layers are. Wang et al. 2022, arXiv:2203.00555
// (model update); Su 2022, https://kexue.fm/archives/8978 (increment explosion).
#pragma once

#include <functional>
#include <vector>

#include "base/string/name_table.hpp"
#include "train/run/run.hpp"

namespace masque::train {

/// The first update of an optimizer, without weight decay and clipping.
enum class FirstUpdate {
  kSgd,   ///< −η ∇L
  kAdam,  ///< −η sign ∇L, nearly: ε is 1e-8
  kLamb,  ///< −η ‖θ‖ / ‖sign ∇L‖ · sign ∇L of each tensor
};
/// "sgd", "adam", "lamb": names on the command line.
NameTable<FirstUpdate> first_updates();

/// What one layer did; with shared weights `gradient`, `update` and `change` are 0 but for the
/// first layer that has them.
struct DepthLayer {
  // Root mean squares, as LayerMagnitudes has them; in the last layer of rows with a loss alone.
  double state = 0;                    ///< LayerMagnitudes::state
  double attention_branch = 0;         ///< LayerMagnitudes::attention_branch
  double feed_forward_branch = 0;      ///< LayerMagnitudes::feed_forward_branch
  double attention_norm_input = 0;     ///< LayerMagnitudes::attention_norm_input
  double feed_forward_norm_input = 0;  ///< LayerMagnitudes::feed_forward_norm_input
  double gradient = 0;                 ///< norm of the gradient by the layer's parameters
  double update = 0;                   ///< norm of the update of these
  double change = 0;                   ///< ‖ΔF‖ when they alone get their update
};

/// What one update changes.
struct DepthReport {
  Index rows = 0;                  ///< positions that have a loss
  double loss = 0;                 ///< before the update, nats a row
  double loss_after = 0;           ///< on the same examples
  double gradient = 0;             ///< norm of all
  double change = 0;               ///< ‖ΔF‖ of the whole update
  std::vector<DepthLayer> layers;  ///< from the first to the last
};

/// Measures one `update` of all trained parameters at `learning_rate`, from the first `sequences`
/// of the run's corpus. `run` is one of an Objective, without a second network. ‖ΔF‖ is the root
/// mean square of what changes in the last states of rows that have a loss (after the final norm,
/// where there is one). The values are those from before when it returns, and the gradients those
/// of the update. Cost: a gradient, and a forward pass for each layer. Throws UsageError for two
/// towers, InputError for a loss that is not finite and without rows that have one, Interrupted.
DepthReport probe_depth(TrainingRun& run, FirstUpdate update, double learning_rate,
                        Index sequences);

/// After an update of the run's trainer.
struct StepChange {
  std::int64_t step = 0;  ///< from 1
  double loss = 0;        ///< loss of the batch that was learnt, nats a row
  double gradient = 0;    ///< norm, before clipping
  double change = 0;      ///< ‖ΔF‖ since the start, on the first `sequences` of the corpus
};

/// Trains `run` for as many steps as its schedule has left, and hands each to `report`, with its
/// change on the first `sequences` of the corpus. The values are those of the end. Throws as
/// probe_depth and Trainer::step.
void follow_change(TrainingRun& run, Index sequences,
                   const std::function<void(const StepChange&)>& report);

}  // namespace masque::train
