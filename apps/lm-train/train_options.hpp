// The options of lm-train.
#pragma once

#include <optional>
#include <string>

#include "cli/run_tool.hpp"
#include "train/run.hpp"

namespace masque::lm_train {

struct Options {
  std::string text;
  std::string output;
  std::string tokenizer;
  std::string format = "lines";
  std::string objective = "mlm";
  std::int64_t length = 128;
  std::optional<std::int64_t> steps;
  std::optional<std::string> budget;
  std::optional<std::string> eval_text;
  std::int64_t eval_every = 0;
  std::int64_t eval_sequences = 1000;
  std::int64_t checkpoint_every = 0;
  bool resume = false;
  // The design.
  std::int64_t num_hidden_layers = 4, hidden_size = 256, num_attention_heads = 4;
  std::optional<std::int64_t> head_size, intermediate_size;
  std::int64_t attention_key_size = 128;
  train::DesignRecipe design;
  bool untied = false;
  // The optimizer.
  train::Optimizer optimizer = train::Optimizer::kAdamW;
  double learning_rate = 1e-3, weight_decay = 0.01, clip = 1, beta1 = 0.9, beta2 = 0.999;
  double dropout = 0, attention_dropout = 0, initializer_range = 0.02, decay_floor = 0;
  std::int64_t batch_size = 32;
  std::optional<std::int64_t> warmup;
  train::Decay decay = train::Decay::kLinear;
  kernel::Precision precision = kernel::Precision::kF32;
  // Objectives.
  std::optional<double> rate, drop, generator_size, discriminator_weight;
  std::optional<std::int64_t> switch_step;
  std::int64_t chunk_tokens = 2048;
  cli::CommonOptions common;
};

/// Declares everything, with the action.
void declare_train(cli::Command& tool);

/// The options as the library takes them; `steps` is known by then.
train::RunOptions run_options(const Options& options, std::int64_t steps);

/// Seconds of "90", "120s", "5m", "2h". Throws UsageError.
double parse_seconds(const std::string& text);

/// Trains as the options say (train.cpp).
cli::ExitCode run_train(const Options& options, cli::Session& session);

}  // namespace masque::lm_train
