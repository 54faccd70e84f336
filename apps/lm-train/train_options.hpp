// The options of lm-train.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "commands/training_options.hpp"
#include "launch.hpp"

namespace masque::lm_train {

struct TrainOptions : commands::TrainingOptions {
  std::string text;
  std::string output;
  train::Recompute recompute = train::Recompute::kAuto;
  std::optional<std::string> init, init_generator;
  bool init_moments = false;
  std::optional<std::string> tokenizer;  ///< of lm-train: none only with init
  std::optional<std::string> requested_format;
  bool pairs = false;
  std::string format;  ///< of these two
  std::optional<std::string> field;
  std::int64_t length = 128;
  evaluate::LengthPolicy::Kind policy = evaluate::LengthPolicy::Kind::kFirst;  ///< of long lines
  std::optional<std::string> steps, budget;
  std::optional<std::string> eval_text;
  std::int64_t eval_every = 0;
  std::int64_t eval_sequences = 1000;
  std::int64_t checkpoint_every = 0;
  std::optional<std::string> timing;
  bool resume = false;
  train::SumPrecision gradient_precision = train::SumPrecision::kF32;
  bool shard_optimizer = false;
  bool ratio_requested = false;  ///< mae_ratio
  std::optional<double> generator_size, discriminator_weight;
  std::optional<std::int64_t> switch_step;
  bool adversarial = false;
  std::optional<train::SharedTables> shared_tables;
  std::optional<double> decoder_size;
  std::optional<std::int64_t> decoder_layers;
  std::optional<double> detector_size, correction_weight;
  std::optional<std::int64_t> detector_layers;
  std::string replace = "mask";
  std::optional<std::string> diversity;
  std::optional<std::string> mask;
  std::optional<model::Streams> streams;
  cli::CommonOptions common;
  const Launch* launch = nullptr;
  train::DesignChanges changes;  ///< of `init`
  bool range_requested = false;  ///< initializer_range was
  /// Of `init` and `init_generator`, once they are read.
  std::shared_ptr<const model::StartingModel> start, generator_start;
};

/// Declares everything, with the action. `launch` must stay.
void declare_train(cli::Command& tool, const Launch& launch);

/// How a command differs from others that have these options.
struct TrainTexts {
  cli::Need need = cli::Need::kRequired;  ///< of TEXT
  std::string text, output;               ///< the help of TEXT and --output
};
/// Declares the options without examples and action. `options` must stay.
void declare_train_options(cli::Command& command, TrainOptions& options, const TrainTexts& texts);
/// What goes together; fills in `format`. Throws UsageError.
void check_train(const cli::Command& command, TrainOptions& options);
/// Whether the objective can take texts of that form, and standard input is read once (train.cpp).
/// Throws UsageError.
void check_format(const TrainOptions& options);

/// What --replace names; empty for mask. Throws UsageError and InputError.
records::SimilarTokens similar_of(const TrainOptions& options, const text::Tokenizer& tokenizer,
                                  cli::Session& session);

/// The options as the library takes them; the steps are known by then.
train::RunOptions run_options(const TrainOptions& options, const records::SimilarTokens& similar,
                              const train::StepPlan& steps);

/// Trains as the options say (train.cpp).
cli::ExitCode run_train(const TrainOptions& options, cli::Session& session);

}  // namespace masque::lm_train
