// Length generalisation: models of several designs and seeds, trained at some lengths and scored at
// others.
#pragma once

#include <vector>

#include "length/request.hpp"
#include "probe/statistics/bootstrap.hpp"

namespace masque::length {

struct LengthResult {
  std::int64_t steps = 0;
  std::vector<LengthRow> rows;                    ///< by arm, seed, fine-tuning, window, length
  std::vector<LengthSubject::Settings> settings;  ///< one an arm × seed, in that order
};

/// Trains and scores all arms and seeds. Results are kept in `folder` (made if it does not exist),
/// one file for each arm and seed, and reused if all settings are the same. An interrupted run
/// continues, within a cell from the last checkpoint (one per minute). Results depend only on the
/// settings, not on the number of threads; with a budget they also depend on the number of steps,
/// which is measured once and kept. Throws UsageError for invalid names of arms, before any is
/// trained; InputError for a folder with other content and for a loss that is not finite;
/// Interrupted.
LengthResult run_lengths(const LengthRequest& request);

/// Statistics of a cell over its seeds.
struct LengthSummary {
  std::size_t arm = 0;
  bool finetuned = false;
  Index window = 0;
  Index length = 0;
  Index targets = 0;
  probe::Summary accuracy, loss, whole;
};

/// By arm, fine-tuning, window, length. Rows as run_lengths gives them.
std::vector<LengthSummary> summarise_lengths(const std::vector<LengthRow>& rows);

/// Whether the mean accuracy is above `chance` by more than two standard errors: the larger of that
/// of the seeds and that of a share of so many targets.
bool above_chance(const LengthSummary& cell, double chance);

}  // namespace masque::length
