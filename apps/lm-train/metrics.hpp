// metrics.jsonl of a run, read again where the run goes on.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace masque::lm_train {

/// What a line says that a later process of the run needs.
struct MetricsLine {
  std::int64_t step = 0;
  std::optional<double> loss;   ///< of a step of training; no number where it had none
  bool evaluation = false;      ///< the losses of evaluations
  bool never_selected = false;  ///< the losses of positions that training never selects
};

/// number, path  of the line, for messages. Throws InputError for what is no JSON or has no step.
MetricsLine read_metrics_line(std::string_view text, std::uint64_t number, const std::string& path);

}  // namespace masque::lm_train
