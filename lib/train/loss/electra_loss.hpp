// ELECTRA's update: a generator fills in, the second network learns from that. Clark et al. 2020,
// arXiv:2003.10555. Electric's: arXiv:2012.08561.
#pragma once

#include <vector>

#include "train/loss/electra.hpp"
#include "train/loss/electra_model.hpp"
#include "train/loss/step_loss.hpp"

namespace masque::train {

/// How an ElectraLoss trains.
struct ElectraLossOptions {
  ElectraSelectionOptions selection;  ///< of Electric no [MASK], and rounded up
  double weight = 50;                 ///< λ of the second network's loss
  /// 0: both networks learn at once. Else two stages: the generator alone for so many steps; then
  /// the second network, from the generator's weights where its own have the same shape (but the
  /// head's), with the generator as it is. The networks share nothing then.
  std::int64_t switch_step = 0;
  bool hands_over = true;  ///< else the second network starts its stage from the weights it has
  kernel::Precision precision = kernel::Precision::kF32;  ///< of products
  Index chunk_rows = 2048;                                ///< Network::chunk_rows of both
  Recompute recompute = Recompute::kAuto;                 ///< Encoder::set_recompute of both
  bool pairs = false;                                     ///< the corpus may have second segments
  std::optional<Diversities> diversity;  ///< Network::reward_diversity of the second network
};

/// L_G + λ L_D: L_G the mean over selected rows of −log p_G, L_D the mean over the second
/// network's rows. A sample is drawn from p_G of the same pass, dropout included; the draw is a
/// function of seed, epoch, sequence and row, and no gradient goes through it.
///
/// With an adversarial model (appendix F) the generator has another loss, weighted as L_G:
/// REINFORCE for the reward R, the second network's loss at a selected row, with a baseline b of
/// the generator's states h:
///     generator  −mean (R − b) · log p_G(sample),  b = −log σ(w · h);  R and b are constants
///     baseline   mean −q log σ(w · h) − (1 − q) log σ(−w · h),  q = e^−R;  q and h are constants
/// q is D's probability of the true label. The generator runs forward twice, with the same dropout.
///
/// Of Electric L_G is the mean over all ordinary rows of −log q, and L_D that of noise-contrastive
/// estimation (energy_example); q and the draws are those of the generator's one pass.
///
/// Losses are those of "generator" and "discriminator", or of "predictor" where the second network
/// has a vocabulary, or "energy" of Electric; shares are fake_rate (samples that are not the true
/// token) and the discriminator's precision and recall of replaced tokens. Of an adversarial
/// generator the loss is reported for the true tokens, and there are "reward" (mean R) and
/// "baseline_loss". T is float or double.
template <class T>
class ElectraLoss final : public StepLoss {
 public:
  /// `parameters` are those that add_electra added for `model`, and must stay; with a switch the
  /// networks share none. Throws UsageError for a selection or designs that do not go together with
  /// `options`.
  ElectraLoss(const ElectraLossOptions& options, const ElectraModel& model,
              Parameters<T>& parameters);

  void check(const Corpus& corpus) const override;
  void begin(std::int64_t step) override;
  void go_on(std::int64_t step) override { step_ = step; }
  void prepare() override;
  StepLosses add_gradients(std::span<const StepItem> items, const DropoutOptions& dropout) override;
  StepLosses evaluate(std::span<const StepItem> items) override;
  bool updates(Index parameter, std::int64_t step) const override;

 private:
  StepLosses run(std::span<const StepItem> items, const DropoutOptions* dropout);
  StepLosses run_energy(std::span<const StepItem> items, const DropoutOptions* dropout);
  LossReport run_generator(std::span<const Example> examples, const DropoutOptions* dropout,
                           const RunOutputs<T>& outputs);
  LossReport run_second(std::span<const Example> examples, const DropoutOptions* dropout,
                        std::vector<double>* row_losses);
  std::vector<Example> second_examples(std::span<const ElectraItem> selected,
                                       std::span<const TokenId> samples, Share& fake) const;
  /// What the generator was rewarded with, and the loss of its baseline.
  struct Played {
    LossReport reward, baseline;
  };
  Played reinforce(std::span<const ElectraItem> selected, std::span<const TokenId> samples,
                   std::span<const double> row_losses, const DropoutOptions* dropout);
  void check_energy() const;
  void check_adversarial() const;
  bool first_stage(std::int64_t step) const { return step <= options_.switch_step; }
  void start_second();

  ElectraLossOptions options_;
  ElectraModel model_;
  Parameters<T>& parameters_;
  ElectraSelection selection_;
  Network<T> generator_, second_;
  Matrix<T> generator_last_;
  std::vector<bool> of_generator_;  ///< parameters that are the generator's own
  std::int64_t step_ = 1;
};

}  // namespace masque::train
