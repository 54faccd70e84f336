// What a run reports while it goes on: a line of progress, metrics, the curve of the loss.
#pragma once

#include <chrono>
#include <deque>
#include <optional>
#include <string>

#include "base/scratch_file.hpp"
#include "loss_curve.hpp"
#include "metrics.hpp"
#include "timing.hpp"
#include "train_options.hpp"

namespace masque::lm_train {

class Log {
 public:
  /// All references must stay. Throws InputError if nothing can be written where the run will be.
  Log(const TrainOptions& options, train::TrainingRun& run, cli::Session& session);

  /// Of the first rank alone.
  const std::optional<ScratchFile>& metrics() const { return metrics_; }
  /// Begins with what an earlier process of the run wrote to `path`. Throws InputError.
  void go_on(const std::string& path);
  /// Whether metrics() has such a line of a step.
  bool has_evaluation(std::int64_t step) const { return evaluated_ == step; }
  bool has_never_selected(std::int64_t step) const { return never_selected_ == step; }

  void step(const train::StepReport& report, std::int64_t steps);
  void evaluation(std::int64_t step, const train::StepLosses& losses);
  void never_selected(std::int64_t step, const train::LossReport& report);

  /// Whether this process made steps, and no step of the run had anything to predict.
  bool has_only_empty_steps() const { return own_steps_ > 0 && !has_loss_; }
  /// An SVG of all steps that have a loss, and of the held-out losses if there are any.
  std::string picture() const;
  /// Of all ranks together; 0 before the first step.
  double tokens_per_second() const;

 private:
  void add_line(const MetricsLine& line);
  void add_loss(std::int64_t step, double loss);
  void append(const std::string& line);
  std::string line(std::int64_t step, std::int64_t steps);
  double seconds() const;

  const TrainOptions& options_;
  train::TrainingRun& run_;
  cli::Session& session_;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  LossCurve curve_;
  bool has_loss_ = false;
  LossCurve held_out_;         ///< of evaluations
  std::deque<double> recent_;  ///< losses of the last steps, as many as a report is about
  std::int64_t own_steps_ = 0;
  double tokens_ = 0, operations_ = 0;
  double peak_ = 0;  ///< operations a second of all ranks; 0: not measured, as nobody sees it
  std::int64_t evaluated_ = -1, never_selected_ = -1;  ///< the last steps with such a line
  std::optional<ScratchFile> metrics_;
  Timing timing_;  ///< of the first rank alone
};

}  // namespace masque::lm_train
