// What a run tells as it goes: a line of progress, metrics, the curve of the loss.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "train_options.hpp"

namespace masque::lm_train {

class Log {
 public:
  /// All references must stay.
  Log(const Options& options, train::TrainingRun& run, cli::Session& session);

  std::string& metrics() { return metrics_; }
  /// Steps before this process.
  void set_first(std::int64_t first) { first_ = first; }

  void step(const train::StepReport& report, std::int64_t steps);
  void evaluation(std::int64_t step, const train::StepLosses& losses);
  void never_selected(std::int64_t step, const train::LossReport& report);

  /// An SVG of the steps of this process.
  std::string picture() const;
  /// Of all ranks together; 0 before the first step.
  double tokens_per_second() const;

 private:
  std::string line(std::int64_t step, std::int64_t steps) const;
  double seconds() const;

  const Options& options_;
  train::TrainingRun& run_;
  cli::Session& session_;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  std::vector<double> losses_;
  double tokens_ = 0, operations_ = 0;
  double peak_ = 0;  ///< operations a second of all ranks; 0: not measured, as nobody sees it
  std::int64_t first_ = 0;
  std::string metrics_;
};

}  // namespace masque::lm_train
