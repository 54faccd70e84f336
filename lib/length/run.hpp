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

/// Trains and scores all arms and seeds. What is done is kept in `folder` (made if there is none),
/// a file for each arm and seed, and taken from there when all settings are the same: a run that
/// was interrupted goes on, inside of a cell from the last checkpoint, one a minute. Results are
/// functions of the settings alone, for any number of threads; with a budget of the steps, too,
/// which are measured once and kept. Throws UsageError for arms whose names are wrong before any is
/// trained; InputError for a folder of something else, a loss that is not finite; Interrupted.
LengthResult run_lengths(const LengthRequest& request);

/// Seeds of a cell put together.
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
