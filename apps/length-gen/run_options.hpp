// The options of length-gen run and sweep.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "commands/training_options.hpp"
#include "length/arms.hpp"
#include "length/run.hpp"

namespace masque::length_gen {

struct RunOptions : commands::TrainingOptions {
  std::optional<double> rate;
  std::optional<std::string> text, eval_text, tokenizer, objective_given, task;
  std::string output;
  std::optional<std::string> mask;
  std::string train_lengths = "64", eval_lengths = "64,128,256,512,1024";
  std::int64_t seeds = 3;
  std::int64_t eval_tokens = 32768, eval_examples = 256;
  std::optional<std::string> windows, finetune_lengths, scale;
  std::optional<std::int64_t> finetune_steps;
  std::optional<double> finetune_learning_rate;
  std::optional<std::int64_t> steps;
  std::optional<std::string> budget;
  bool keep_models = false;
  cli::CommonOptions common;
};

/// All of them but those of a single command, in the order of --help.
void declare_run_options(cli::Command& command, RunOptions& options);

/// Designs, and a request without subject and options, as they are requested. Throws UsageError.
struct Requested {
  std::vector<length::LengthArm> arms;
  std::vector<Index> train_lengths;
  length::LengthRequest request;
  std::size_t cells() const { return arms.size() * request.seeds.size(); }
};
Requested requested_of(const RunOptions& options);

/// Throws UsageError for options that were requested and that nothing reads.
void check_run(const cli::Command& command, const RunOptions& options);

/// Reads the texts. Throws UsageError, InputError.
std::unique_ptr<const length::LengthSubject> subject_of(const RunOptions& options,
                                                        const Requested& requested);

}  // namespace masque::length_gen
