// The two networks of ELECTRA, of its ablations, and of Electric: designs, shared parameters, and
// their update: a generator fills in, the second network learns from that. Clark et al. 2020,
// arXiv:2003.10555; Electric: arXiv:2012.08561.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/string/name_table.hpp"
#include "model/checkpoint/placed.hpp"
#include "records/drop.hpp"
#include "records/mlm.hpp"
#include "train/data/corpus.hpp"
#include "train/data/example.hpp"
#include "train/data/objective.hpp"
#include "train/loss/step_loss.hpp"
#include "train/network/copy_gate.hpp"
#include "train/network/recipe.hpp"

namespace masque::train {

// The tasks of ELECTRA's two networks, and of Electric's: the selection, and labels from samples.
// Clark et al. 2020, arXiv:2003.10555; arXiv:2012.08561. Samples are drawn in
// kernel/softmax/vocabulary_loss.hpp; the joint loss stands below.

/// A sequence between both networks.
struct ElectraItem {
  std::vector<TokenId> ids;      ///< as they are in the corpus
  std::vector<TokenId> masked;   ///< what the generator reads
  std::vector<Index> positions;  ///< empty: 0, 1, …
  std::vector<Index> segments;   ///< empty: 0
  std::vector<Index> rows;       ///< selected, ascending
  std::vector<Index> ordinary;   ///< that could have been selected: not special; ascending
};

/// What an ElectraSelection selects.
struct ElectraSelectionOptions {
  /// How many and which tokens; its seed is replaced by `seed`.
  records::SelectionOptions selection{.choice = records::Choice::kExact};
  /// Share of the selected tokens that are [MASK] in the generator's input; others stay.
  double mask = 0.85;
  records::DropOptions drop{.rate = 0};  ///< DropToken before
  std::uint64_t seed = 0;                ///< seed of DropToken and of the selection
  records::TokenTable tokens = {};       ///< tokens of the tokenizer: token_table()
};

/// Selects what the generator predicts. Immutable, thread-safe.
class ElectraSelection {
 public:
  /// Copies `options`. Throws UsageError for invalid shares, and without a mask token where one is
  /// put in.
  explicit ElectraSelection(const ElectraSelectionOptions& options);
  /// Returns what is selected of the sequence `item` in `epoch`: a function of both and the
  /// options.
  ElectraItem select(const CorpusItem& item, std::uint64_t epoch) const;

 private:
  std::unique_ptr<records::Corruption> drop_;
  std::unique_ptr<records::Corruption> mlm_;
  records::TokenTable tokens_;
};

/// Returns numbers in [0, 1) that tokens are drawn by, one for each of `rows`: a function of
/// `seed`, `epoch`, the number of `item` and row.
std::vector<double> draw_numbers(const CorpusItem& item, std::uint64_t epoch,
                                 std::span<const Index> rows, std::uint64_t seed);

/// Returns the generator's example of `item`: the selected tokens from `masked`.
Example generator_example(const ElectraItem& item);

/// Returns the ids of `item` with samples[k] at rows[k]. `samples` has one token for each of the
/// item's rows, here and below.
std::vector<TokenId> corrupted_ids(const ElectraItem& item, std::span<const TokenId> samples);

/// Returns the generator's example of `item` when it is rewarded for its draws: the `samples` as
/// targets, with these `weights`, one a row.
Example drawn_example(const ElectraItem& item, std::span<const TokenId> samples,
                      std::span<const double> weights);

/// Returns the discriminator's example of `item` with `samples` in it: target 1 where a corrupted
/// id differs from the true one, else 0 (a correct sample counts as original). `all`: at every
/// position, specials included; else at the selected ones (the ablation ELECTRA 15 %).
Example discriminator_example(const ElectraItem& item, std::span<const TokenId> samples, bool all);

/// Returns the example of `item` in the ablation Replace-MLM: the true tokens at the selected rows,
/// from `samples` instead of [MASK]. With `all`: at every position, for All-Tokens MLM.
Example replaced_example(const ElectraItem& item, std::span<const TokenId> samples, bool all);

/// Returns the example of `item` for Electric's noise distribution q, a cloze model: the ordinary
/// tokens, from the others.
Example cloze_example(const ElectraItem& item);

/// What q says of the ordinary rows of an item, one number each, in their order.
struct NoiseRows {
  std::span<const TokenId> draws;       ///< from q
  std::span<const double> draw_losses;  ///< −log q of them, nats
  std::span<const double> losses;       ///< −log q of the true tokens, nats
};

/// Returns the draws of `noise` at the selected rows of `item`.
std::vector<TokenId> selected_draws(const ElectraItem& item, const NoiseRows& noise);

/// Returns Electric's example of `item`, by conditional noise-contrastive estimation (Algorithm 2):
/// the ids with q's draws, of `noise`, in the selected places; at each ordinary row the target is 1
/// if it is selected, whatever was drawn, else 0, and the offset log q(token | the other true
/// tokens) + log(rate / (1 − rate)) is what is added to the energy for the logit of that. `rate`,
/// in (0, 1), is the share that is selected. Special tokens, which are never replaced, have no
/// loss.
Example energy_example(const ElectraItem& item, const NoiseRows& noise, double rate);

/// What the second network learns from the generator's samples. Texts are of one line.
struct ElectraVariant {
  std::string_view name;     ///< as on the command line
  std::string_view summary;  ///< what the second network learns
  bool all = false;          ///< a loss at all positions, not at the selected ones alone
  bool vocabulary = false;   ///< it predicts tokens; else which are replaced
  bool copies = false;       ///< its vocabulary has a CopyGate
  /// Electric: it gives energies, trained by noise-contrastive estimation. Its generator, the
  /// noise distribution, is a TwoTower.
  bool energy = false;
  double weight = 1;  ///< λ of its loss, unless another is given
};

/// All of them, sorted by name.
std::span<const ElectraVariant> electra_variants();
/// What each of them reads and needs.
const ObjectiveTraits& electra_traits();
/// Returns the variant called `name`; nullptr if it is none of them.
const ElectraVariant* find_electra(std::string_view name);

/// Sets what `variant` decides of the second network's `design`, as Objective::adapt. Of
/// `requested` the tokens and whether there are pairs are read, here and below.
void adapt_electra(const ElectraVariant& variant, const ObjectiveOptions& requested,
                   model::Design& design);

/// Sets what `variant` decides of the generator's `design`, as `requested` and Objective::adapt:
/// a masked-LM head, and two towers for Electric.
void adapt_generator(const ElectraVariant& variant, const ObjectiveOptions& requested,
                     model::Design& design);

/// Returns the generator of a network of design `second`, made by `recipe`, in `variant`: as many
/// layers, widths of `size` (more than 0, at most 1) times its own, heads of the same size where
/// that is possible, its tables, and what adapt_generator() sets for `requested`. Electric's has as
/// many layers in each tower. Throws UsageError for another size, and as design_of.
model::Design generator_design(const ElectraVariant& variant, const DesignRecipe& recipe,
                               double size, const ObjectiveOptions& requested,
                               const model::Design& second);

/// Which tables the networks have together, where they fit.
enum class SharedTables {
  kNone,   ///< each network has its own
  kWords,  ///< those of words alone
  kAll,    ///< tables of words, positions and segments
};
/// "none", "words", "all".
NameTable<SharedTables> shared_tables_names();
/// Returns the roles of the tables that each network then has of its own: those of kSharedTables
/// that `shared` leaves out.
std::vector<model::Role> tables_apart(SharedTables shared);

/// Both networks, in one set of parameters.
struct ElectraModel {
  const ElectraVariant* variant = nullptr;  ///< one of electra_variants()
  model::Design generator;                  ///< design of the generator
  model::Design second;                     ///< design of the second network, which is kept
  ParameterMap generator_map;               ///< places of the generator; add_electra() sets it
  ParameterMap second_map;                  ///< places of the second; add_electra() sets it
  /// The names of the generator's tensors in files; none: those of model::saved_design.
  std::optional<model::ModelPlan> generator_plan;
  /// The names of the second network's tensors in files; none: those of model::saved_design.
  std::optional<model::ModelPlan> second_plan;
  std::vector<model::Role> apart;        ///< tables that each has of its own, though they fit
  CopyGateParameters gate;               ///< with ElectraVariant::copies; add_electra() sets it
  bool adversarial = false;              ///< the generator learns to be found out, not to be right
  Index baseline = ParameterMap::kNone;  ///< then: w (1, the generator's hidden size)
};

/// Adds the parameters of both networks of `model` to `parameters`, those of the generator with
/// names that begin with "generator.", and sets their places in `model`. `shared`: tables of words,
/// positions and segments are those of the second network, where they fit (step_loss.hpp), but
/// for ElectraModel::apart. T is float or double.
template <class T>
void add_electra(ElectraModel& model, bool shared, Parameters<T>& parameters);

/// How an ElectraLoss trains.
struct ElectraLossOptions {
  ElectraSelectionOptions selection;  ///< for Electric without [MASK], and rounded up
  double weight = 50;                 ///< λ of the second network's loss
  /// 0: both networks learn at once. Else two stages: the generator alone for so many steps; then
  /// the second network, from the generator's weights where its own have the same shape (but the
  /// head's), with the generator as it is. The networks share nothing then.
  std::int64_t switch_step = 0;
  bool hands_over = true;  ///< else the second network starts its stage from the weights it has
  kernel::Precision precision = kernel::Precision::kF32;  ///< precision of products
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
/// In Electric L_G is the mean over all ordinary rows of −log q, and L_D that of noise-contrastive
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
