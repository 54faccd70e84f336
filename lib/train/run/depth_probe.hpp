// Why deep models are hard to train: what one update changes in the function, all of it and each
// layer alone, and how large the numbers in the layers are. Wang et al. 2022, arXiv:2203.00555
// (model update); Su 2022, https://kexue.fm/archives/8978 (increment explosion).
#pragma once

#include <functional>
#include <vector>

#include "base/name_table.hpp"
#include "train/run/run.hpp"

namespace masque::train {

/// The first update of an optimizer, without weight decay and clipping.
enum class FirstUpdate {
  kSgd,   ///< −η ∇L
  kAdam,  ///< −η sign ∇L, nearly: ε is 1e-8
  kLamb,  ///< −η ‖θ‖ / ‖sign ∇L‖ · sign ∇L of each tensor
};
/// "sgd", "adam", "lamb".
NameTable<FirstUpdate> first_updates();

/// Of one layer; with shared weights `gradient`, `update` and `change` are 0 but for the first
/// layer that has them.
struct DepthLayer {
  // Root mean squares, as LayerMagnitudes has them; in the last layer of rows with a loss alone.
  double state = 0;
  double attention_branch = 0, feed_forward_branch = 0;
  double attention_norm_input = 0, feed_forward_norm_input = 0;
  double gradient = 0;  ///< norm of the gradient by the layer's parameters
  double update = 0;    ///< norm of the update of these
  double change = 0;    ///< ‖ΔF‖ when they alone get their update
};

struct DepthReport {
  Index rows = 0;         ///< positions that have a loss
  double loss = 0;        ///< before the update
  double loss_after = 0;  ///< on the same examples
  double gradient = 0;    ///< norm of all
  double change = 0;      ///< ‖ΔF‖ of the whole update
  std::vector<DepthLayer> layers;
};

/// One update of all trained parameters from the first `sequences` of the run's corpus. ‖ΔF‖ is
/// the root mean square of what changes in the last states of rows that have a loss (after the
/// final norm, where there is one). The values are those from before when it returns. Cost: a
/// gradient, and a forward pass for each layer. Throws UsageError for objectives of two networks
/// and for two towers, InputError for what is not finite, Interrupted.
DepthReport probe_depth(TrainingRun& run, FirstUpdate update, double learning_rate,
                        Index sequences);

/// After an update of the run's trainer.
struct StepChange {
  std::int64_t step = 0;
  double loss = 0;      ///< of the batch that was learnt
  double gradient = 0;  ///< norm, before clipping
  double change = 0;    ///< ‖ΔF‖ since the start, on the first `sequences` of the corpus
};

/// Trains the run for as many steps as its schedule has, and hands each to `report`. The values are
/// those of the end. Throws as probe_depth and Trainer::step.
void follow_change(TrainingRun& run, Index sequences,
                   const std::function<void(const StepChange&)>& report);

}  // namespace masque::train
