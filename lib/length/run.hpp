// Length generalisation: models of several designs and seeds, trained at some lengths and scored at
// others.
#pragma once

#include <vector>

#include "evaluate/statistics/summary.hpp"
#include "length/request.hpp"

namespace masque::length {

/// The result of a run.
struct LengthResult {
  std::int64_t steps = 0;                         ///< training steps of every arm
  std::vector<LengthRow> rows;                    ///< by arm, seed, fine-tuning, window, length
  std::vector<LengthSubject::Settings> settings;  ///< one an arm × seed with rows, in that order
};

/// Trains and scores all arms and seeds of `request`. Results are kept in its `folder` (made if it
/// does not exist), one file for each arm and seed, and reused if all settings are the same. An
/// interrupted run continues, within a cell from the last checkpoint (one per minute). Results
/// depend only on the settings, not on the number of threads; with a budget they also depend on the
/// number of steps, which is measured once and kept. Throws UsageError, before anything is trained,
/// for masks that do not fit a length or let rows read what they predict, for positions
/// that reach no length (position_count), and for a budget that scoring alone exceeds; InputError
/// for a folder with other content, for a cell that another process trains in it, and for a loss
/// that is not finite; Interrupted.
LengthResult run_lengths(const LengthRequest& request);

/// Statistics of an arm at a length over its seeds.
struct LengthSummary {
  std::size_t arm = 0;         ///< LengthRow::arm
  bool finetuned = false;      ///< LengthRow::finetuned
  Index window = 0;            ///< LengthRow::window
  Index length = 0;            ///< LengthRow::length
  Index targets = 0;           ///< of one seed
  evaluate::Summary accuracy;  ///< of LengthRow::accuracy
  evaluate::Summary loss;      ///< of LengthRow::loss, nats a target
  evaluate::Summary whole;     ///< of LengthRow::whole
};

/// Returns the statistics of `rows`, which are as run_lengths returns them: by arm, fine-tuning,
/// window and length. Cost: quadratic in the number of rows.
std::vector<LengthSummary> summarise_lengths(const std::vector<LengthRow>& rows);

/// Whether the mean accuracy of `cell` is above `chance`, a share from 0 to 1, by more than two
/// standard errors: the larger of that of the seeds and that of a share of so many targets.
bool above_chance(const LengthSummary& cell, double chance);

}  // namespace masque::length
