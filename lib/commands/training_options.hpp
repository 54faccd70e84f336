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

/// The options of a model and of its training as a command line gives them; run_options turns them
/// into what the library takes. Their defaults are those of the tools.
struct TrainingOptions {
  std::string objective = "mlm";  ///< of train::objectives(), or one of two networks
  std::string several_heads =
      "4";  ///< in place of design.num_attention_heads, where it may be a list
  std::optional<std::string> position;  ///< a scheme; none: learned, with plm rope
  train::DesignRecipe design;           ///< but for `position`
  bool design_of_checkpoint = false;    ///< the model has a design: these are no settings of it
  train::Optimizer optimizer = train::Optimizer::kAdamW;  ///< of all parameters
  double learning_rate = 1e-3,                            ///< the peak, after the warm-up
      weight_decay = 0.01,                                ///< of matrices and tables
      clip = 1,                                ///< greatest norm of the gradients; 0: any
      beta1 = 0.9,                             ///< of the running mean of gradients
      beta2 = 0.999;                           ///< of the running mean of squared gradients
  double dropout = 0,                          ///< of states; probability
      attention_dropout = 0,                   ///< of attention weights; probability
      score_noise = 0,                         ///< standard deviation, of scores that are passed on
      score_dropout = 0,                       ///< of these scores; probability
      initializer_range = 0.02,                ///< standard deviation of initial weights
      decay_floor = 0;                         ///< share of the peak that is left at the end
  std::int64_t batch_size = 32;                ///< sequences of a step
  std::optional<std::int64_t> warmup;          ///< steps; none: 5 % of all
  train::Decay decay = train::Decay::kLinear;  ///< of the learning rate after the warm-up
  kernel::Precision precision = kernel::Precision::kF32;  ///< of products: kF32 or kBf16
  MlmChoice mlm;                                          ///< masked language modelling
  records::PermOptions perm;                              ///< of plm
  PrefixChoice prefix{.mix = "2:2:1:1"};                  ///< of unilm
  double mae_ratio = 0.75;                 ///< share of the tokens that mae and mae-mask hide
  std::optional<std::int64_t> block_size,  ///< tokens of a block of mdlm, or with `memory`
      memory,                              ///< tokens of Transformer-XL's memory; none: no memory
      latent_layers,                       ///< layers with a bottleneck of UniVAE
      latent_size;                         ///< dimensions of a bottleneck
  std::optional<double> kappa;             ///< concentration of UniVAE's distribution
  bool learned_kappa = false;              ///< that concentration is trained
  std::optional<double> kl_weight,         ///< of DivergenceLoss; none: its default
      free_nats;                           ///< of DivergenceLoss, in nats; none: its default
  std::optional<std::int64_t> kl_cycle;    ///< of DivergenceLoss, in steps; none: its default
  DropChoice drop;                         ///< DropToken
  bool allow_leak = false;                 ///< trains even if rows can read what they predict
  std::int64_t chunk_tokens = 1024;        ///< RunOptions::chunk_rows
  train::TrainedOptions trained;           ///< which tensors are trained, and at which rates
};

/// Declares the sizes and variants of a model in `command`, with `options` as their targets;
/// `several` is appended to the help of what may be a list. Heads may then be one, too
/// (TrainingOptions::several_heads).
void declare_design(cli::Command& command, TrainingOptions& options,
                    const std::string& several = "");
/// Throws UsageError for an option of declare_design that was requested of `command`, but for
/// `changes`: the model of the option `model` has a design.
void refuse_design(const cli::Command& command, std::string_view model,
                   std::initializer_list<std::string_view> changes);
/// Throws UsageError for options of declare_optimizer and declare_trained that were requested of
/// `command`, where nothing is trained; `because` says why. Precision counts without training as
/// well, and so do the options `read`.
void refuse_training(const cli::Command& command, std::string_view because,
                     std::initializer_list<std::string_view> read = {});
/// Throws UsageError "… has no effect BECAUSE; remove it", with this `because`, if one of the
/// `options`, by their keys, was requested of `command`.
void refuse_unread(const cli::Command& command, std::span<const std::string_view> options,
                   std::string_view because);
/// The same for `options` in braces; `command` and `because` as above.
void refuse_unread(const cli::Command& command, std::initializer_list<std::string_view> options,
                   std::string_view because);
/// Declares in `command` the options that objectives read, and --allow-leak; `options` holds their
/// targets.
void declare_objective(cli::Command& command, TrainingOptions& options);
/// Throws UsageError for an objective that is none, and for `options` that were requested of
/// `command` and that nothing reads: the objective (`pairs`: of sources and targets), the layers,
/// or what another option says.
void check_options(const cli::Command& command, const TrainingOptions& options, bool pairs);
/// Throws UsageError for what was requested of `command` and the design of `options` does not read.
void check_design(const cli::Command& command, const TrainingOptions& options);
/// The same for several `designs`, at least one: what was requested of `command` and none of them
/// reads is refused.
void check_designs(const cli::Command& command, std::span<const train::DesignRecipe> designs);
/// Throws UsageError for --decay-floor requested of `command` where the schedule of `options` is
/// constant.
void check_decay(const cli::Command& command, const TrainingOptions& options);
/// Declares --allow-leak of `command`, with `options` as its target.
void declare_allow_leak(cli::Command& command, TrainingOptions& options);
/// Declares optimizer, schedule, dropout and precision in `command`, with `options` as their
/// targets.
void declare_optimizer(cli::Command& command, TrainingOptions& options);
/// Declares in `command` which tensors are trained, and at which rates, with `options` as their
/// targets.
void declare_trained(cli::Command& command, TrainingOptions& options);
/// Appends which tensors `options` train, and at which rates, to the settings of `run`.
void add_trained_settings(const TrainingOptions& options, train::RunOptions& run);

/// `options` as the library takes them, with their settings, for `steps` steps (known by then) and
/// this `seed`; --warmup is 5 % of the steps by default. Settings of add_trained_settings are not
/// among them. Throws UsageError for shares or a position that are none.
train::RunOptions run_options(const TrainingOptions& options, std::int64_t steps,
                              std::uint64_t seed);

/// The seconds of `text`, as "90", "120s", "5m" or "2h", above 0 and up to 1e9; nothing for any
/// other text.
std::optional<double> find_seconds(std::string_view text);
/// As find_seconds(text). Throws UsageError about the field `budget` for any other `text`.
double parse_seconds(std::string_view text);

}  // namespace masque::commands
