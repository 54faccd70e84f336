// Updates of a model: examples of a step, gradients, optimizer.
#pragma once

#include <functional>
#include <future>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/string/name_table.hpp"
#include "model/design.hpp"
#include "train/data/corpus.hpp"
#include "train/data/order.hpp"
#include "train/loss/gradient_sums.hpp"
#include "train/loss/ranks.hpp"
#include "train/loss/step_loss.hpp"
#include "train/run/schedule.hpp"

namespace masque::train {

/// How values are updated from their gradients: kernel/optimizer.hpp.
enum class Optimizer {
  kAdamW,  ///< kernel::adamw_update
  kLamb,   ///< kernel::lamb_update
};
/// "adamw", "lamb".
NameTable<Optimizer> optimizer_names();

/// How a Trainer trains.
struct TrainerOptions {
  Schedule schedule;                        ///< steps and learning rates
  Index batch_size = 32;                    ///< sequences of an update
  Optimizer optimizer = Optimizer::kAdamW;  ///< optimizer of all parameters
  double beta1 = 0.9;                       ///< decay of the first moments
  double beta2 = 0.999;                     ///< decay of the second moments
  double epsilon = 1e-8;                    ///< added to the root of the second moments
  /// Weight decay of parameters that decay: Parameter::decays.
  double weight_decay = 0.01;
  double clip = 1;               ///< largest norm of all gradients together; 0: none
  double hidden_dropout = 0;     ///< DropoutOptions::hidden_dropout
  double attention_dropout = 0;  ///< DropoutOptions::attention_dropout
  double score_noise = 0;        ///< DropoutOptions::score_noise
  double score_dropout = 0;      ///< DropoutOptions::score_dropout
  std::uint64_t seed = 0;        ///< seed of order and dropout
  SumPrecision gradient_precision = SumPrecision::kF32;  ///< in which gradients go between ranks
  /// Each of several ranks keeps the moments of its own parts of the parameters alone, updates
  /// those and gives them to all (Rajbhandari et al. 2020, arXiv:1910.02054, stage 1). It changes
  /// no bit. Not for kLamb, whose step goes by whole tensors.
  bool shard_optimizer = false;
};

/// Throws UsageError for noise or dropout of scores in `options` that no layer of `design` hands
/// on.
void check_score_noise(const TrainerOptions& options, const model::Design& design);

/// One update.
struct StepReport {
  std::int64_t step = 0;     ///< from 1
  StepLosses loss;           ///< loss of the batch, before the update
  double learning_rate = 0;  ///< learning rate of a parameter with the rate 1
  double gradient_norm = 0;  ///< before clipping
  Index tokens = 0;          ///< StepLosses::tokens
  std::uint64_t epoch = 0;   ///< epoch of its last sequence
  double seconds = 0;        ///< that it took; run_steps() fills it in
  double waited = 0;         ///< seconds of these until its sequences were read
};

/// What an optimizer keeps.
struct OptimizerState {
  /// First moments, [1, numbers]: one for each of the gradients' memory; of Trainer::shards() those
  /// of the own parts alone, one part after the other.
  Matrix<float> first;
  Matrix<float> second;  ///< second moments, in the same way
  /// How many updates the moments of each parameter have had. Their bias goes by it.
  std::vector<std::int64_t> updates;
};

/// Trains parameters on a corpus. Everything that a step does is a function of options, corpus,
/// values, state and its number. For one thread; kernels use all.
class Trainer {
 public:
  /// Trains `parameters` to lower `loss` on `corpus` as `options` say; which parameters are trained
  /// may not change afterwards. All references must stay. Each of several `ranks` takes a run of a
  /// batch's sequences, the same one in every step; values and state are the same on all. Throws
  /// what StepLoss::check throws, and UsageError for fewer sequences in a batch than ranks, and for
  /// shard_optimizer with kLamb.
  Trainer(StepLoss& loss, Parameters<float>& parameters, const Corpus& corpus,
          const TrainerOptions& options, Ranks& ranks = one_rank());

  /// Makes the next update. All ranks call it together. Throws InputError if the loss or the
  /// gradient is not finite, or a sequence of a corpus in files is damaged, and as Ranks::finish:
  /// values are those before it, but of shards() where ranks do not answer.
  StepReport step();
  /// Steps that are done; a run that goes on sets it.
  std::int64_t done() const { return done_; }
  /// Goes on after `steps` steps, which another process made: StepLoss::go_on. Values and state()
  /// must be those after them.
  void set_done(std::int64_t steps);
  /// Steps of the whole run, as the schedule has them now.
  std::int64_t steps() const { return options_.schedule.plan().steps(); }
  /// Moments and numbers of updates. Lives as long as the trainer.
  OptimizerState& state() { return state_; }
  /// Whether this process writes what is saved.
  bool is_first() const { return ranks_.is_first(); }
  /// Whether the state has the own parts alone: TrainerOptions::shard_optimizer, of several ranks.
  bool shards() const { return options_.shard_optimizer && ranks_.count() > 1; }
  /// Moments of all parameters, of shards() from all ranks, which call it together: each calls
  /// `take`(second, numbers) with runs of the gradients' memory in its order, first all first
  /// moments, then all second ones.
  void visit_moments(const std::function<void(bool second, std::span<const float> numbers)>& take);
  /// Sets the first or `second` moments of trained parameter `i` to `numbers`, one for each of its
  /// elements.
  void set_moments(Index i, bool second, std::span<const float> numbers);
  /// The options, with the schedule as it is now.
  const TrainerOptions& options() const { return options_; }
  /// Changes how many updates the whole run has, from the next one on. Some must be done, and
  /// `steps` must be more than those.
  void set_steps(std::int64_t steps);

 private:
  std::vector<StepItem> items(std::int64_t step) const;
  std::vector<StepItem> next_items(std::int64_t step);
  double gradient_norm();
  void update(StepReport& report);
  void share_values();
  /// Calls `visit`(element, count, at) for the runs of parameter `p` of which the state has
  /// moments: from its number `element` on `count`, which stand at `at` in the state.
  template <class F>
  void for_own_runs(const Parameter& p, const F& visit) const;

  StepLoss& loss_;
  Parameters<float>& parameters_;
  const Corpus& corpus_;
  Ranks& ranks_;
  TrainerOptions options_;
  EpochOrder order_;
  OptimizerState state_;
  GradientSums sums_;
  std::vector<RankShare> own_;  ///< runs of the gradients' memory that the state has moments of
  std::int64_t done_ = 0;
  /// For a corpus in files: the sequences of a step that are read while the step before runs.
  std::future<std::vector<StepItem>> ahead_;
  std::int64_t ahead_step_ = 0;
};

/// Returns the losses `loss` of the first `most` sequences of `corpus` (0: all), corrupted as in
/// one epoch that no training has. Prepares the loss.
StepLosses evaluate(StepLoss& loss, const Corpus& corpus, Index most);

/// Returns the losses of `network`, which is prepared by the call, on the first `most` sequences of
/// `corpus` (0: all) as `objective` corrupts them, at positions that `epochs` epochs of training
/// have not selected (Objective::has_never_selected). Throws Interrupted.
LossReport evaluate_never_selected(Network<float>& network, const Objective& objective,
                                   const Corpus& corpus, Index most, std::uint64_t epochs);

}  // namespace masque::train
