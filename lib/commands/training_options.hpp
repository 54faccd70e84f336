// The options of a model and of its training, as lm-train and length-gen have them.
#pragma once

#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "cli/run_tool.hpp"
#include "commands/corruption_options.hpp"
#include "train/run/run.hpp"

namespace masque::commands {

struct TrainingOptions {
  std::string objective = "mlm";
  // The design.
  std::int64_t num_hidden_layers = 4, hidden_size = 256, num_attention_heads = 4;
  std::string several_heads = "4";  ///< in place of num_attention_heads, where it may be a list
  std::optional<std::int64_t> head_size, value_size, intermediate_size;
  std::optional<std::int64_t> mixer_inner_size, softmax_heads, value_heads, largest_keys,
      late_positions;
  std::int64_t attention_key_size = 128;
  std::optional<std::string> position;
  train::DesignRecipe design;  ///< but for what stands above
  bool untied = false, no_input_residual = false;
  // The optimizer.
  train::Optimizer optimizer = train::Optimizer::kAdamW;
  double learning_rate = 1e-3, weight_decay = 0.01, clip = 1, beta1 = 0.9, beta2 = 0.999;
  double dropout = 0, attention_dropout = 0, score_noise = 0, score_dropout = 0,
         initializer_range = 0.02, decay_floor = 0;
  std::int64_t batch_size = 32;
  std::optional<std::int64_t> warmup;
  train::Decay decay = train::Decay::kLinear;
  kernel::Precision precision = kernel::Precision::kF32;
  // Objectives.
  MlmChoice mlm;
  records::PermOptions perm;
  PrefixChoice prefix{.mix = "2:2:1:1"};
  double mae_ratio = 0.75;
  std::optional<std::int64_t> block_size, memory, latent_layers, latent_size;
  std::optional<double> kappa;
  bool learned_kappa = false;
  std::optional<double> kl_weight, free_nats;
  std::optional<std::int64_t> kl_cycle;
  DropChoice drop;
  bool allow_leak = false;
  std::int64_t chunk_tokens = 1024;
  train::TrainedOptions trained;
};

/// Sizes and variants; `several` is appended to the help of what may be a list. Heads may then be
/// one, too (TrainingOptions::several_heads).
void declare_design(cli::Command& command, TrainingOptions& options,
                    const std::string& several = "");
/// Throws UsageError for an option of declare_design that was requested, but for `changes`: the
/// model of the option `model` has a design.
void refuse_design(const cli::Command& command, std::string_view model,
                   std::initializer_list<std::string_view> changes);
/// Throws UsageError for options of declare_optimizer and declare_trained that were requested,
/// where nothing is trained; `because` says why. Precision counts without training as well, and so
/// do the options `read`.
void refuse_training(const cli::Command& command, std::string_view because,
                     std::initializer_list<std::string_view> read = {});
/// Throws UsageError "… has no effect BECAUSE; remove it" if one of the options, by their keys, was
/// requested.
void refuse_unread(const cli::Command& command, std::span<const std::string_view> options,
                   std::string_view because);
void refuse_unread(const cli::Command& command, std::initializer_list<std::string_view> options,
                   std::string_view because);
/// What objectives read.
void declare_objective(cli::Command& command, TrainingOptions& options);
/// Throws UsageError for an objective that is none, and for options that were requested and that
/// nothing reads: the objective (`pairs`: of sources and targets), the layers, or what another
/// option says.
void check_options(const cli::Command& command, const TrainingOptions& options, bool pairs);
/// The same for what a design decides alone.
void check_design(const cli::Command& command, const TrainingOptions& options);
/// The same for several designs, at least one: what none of them reads is refused.
void check_designs(const cli::Command& command, std::span<const train::DesignRecipe> designs);
/// The same for the schedule alone.
void check_decay(const cli::Command& command, const TrainingOptions& options);
/// The flag --allow-leak.
void declare_allow_leak(cli::Command& command, TrainingOptions& options);
/// Optimizer, schedule, dropout, precision.
void declare_optimizer(cli::Command& command, TrainingOptions& options);
/// Which tensors are trained, and at which rates.
void declare_trained(cli::Command& command, TrainingOptions& options);
/// As settings of a run.
void add_trained_settings(const TrainingOptions& options, train::RunOptions& run);

/// The design with the sizes that stand apart from it.
train::DesignRecipe design_with_sizes(const TrainingOptions& options);

/// The options as the library takes them, with their settings; `steps` is known by then.
train::RunOptions run_options(const TrainingOptions& options, std::int64_t steps,
                              std::uint64_t seed);

/// Seconds of "90", "120s", "5m", "2h"; nothing for any other text.
std::optional<double> find_seconds(std::string_view text);
/// The same. Throws UsageError about `budget`.
double parse_seconds(std::string_view text);

}  // namespace masque::commands
