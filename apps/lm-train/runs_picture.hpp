// Loss curves of several runs in one picture.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "draw/chart.hpp"

namespace masque::lm_train {

/// As many curves as look different.
constexpr std::size_t kMostCurves = 12;

/// Runs that are one curve: those of the seeds of a combination of options.
struct RunGroup {
  std::string name;                  ///< in the legend
  std::vector<std::string> folders;  ///< of the runs that exist
};

/// The losses of `groups` over the steps, read from metrics.jsonl of each folder: of the held-out
/// text if a run has any, else of the training batches. A group of several runs has the mean over
/// its runs at each step that all of them have, and a band from the lowest to the highest of them.
/// Throws UsageError for more than kMostCurves groups; InputError as for_each_metrics_line, and if
/// no run has a loss.
draw::Chart runs_chart(const std::vector<RunGroup>& groups);

}  // namespace masque::lm_train
