// The options of lm-train classify.
#pragma once

#include <optional>
#include <string>

#include "commands/training_options.hpp"
#include "launch.hpp"
#include "train/classify/classifier.hpp"
#include "train/data/labelled_corpus.hpp"

namespace masque::lm_train {

struct ClassifyCommand : commands::TrainingOptions {
  std::string text;
  std::optional<std::string> model, tokenizer, output, eval_data, timing;
  std::string text_columns = "1", label_column = "2";
  bool header = false, resume = false;
  std::optional<train::ClassifierPooling> pooling;
  train::ProblemType problem = train::ProblemType::kSingleLabel;
  std::string mask = "model";
  std::optional<std::int64_t> length, steps;
  evaluate::LengthPolicy::Kind policy = evaluate::LengthPolicy::Kind::kFirst;  ///< of long texts
  std::optional<double> epochs;
  std::int64_t seeds = 1;
  cli::CommonOptions common;
  const Launch* launch = nullptr;

  ClassifyCommand();
};

/// Adds the sub-command; `launch` must stay.
void declare_classify(cli::Command& tool, const Launch& launch);
/// Throws UsageError for options that do nothing with others.
void check_classify(const ClassifyCommand& options);
train::RunOptions classify_options(const ClassifyCommand& options, std::int64_t steps,
                                   std::uint64_t seed);
train::LabelledOptions labelled_options(const ClassifyCommand& options);
cli::ExitCode run_classify(const ClassifyCommand& options, cli::Session& session);

}  // namespace masque::lm_train
