// What an update minimises: one network on an objective's examples, or several on each other's.
#pragma once

#include <array>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "model/design.hpp"
#include "train/data/corpus.hpp"
#include "train/data/objective.hpp"
#include "train/loss/gradient_sums.hpp"
#include "train/loss/ranks.hpp"
#include "train/network/network.hpp"
#include "train/network/parameters.hpp"

namespace masque::train {

/// Scores of the numbers of two classes.
struct RankedScores {
  std::vector<double> positive;  ///< scores of the class that should have the larger ones
  std::vector<double> negative;  ///< scores of the other class

  /// Whether neither class has a score.
  bool empty() const { return positive.empty() && negative.empty(); }
  /// Appends the scores of `other`.
  void add(const RankedScores& other);
  /// The area under the receiver operating characteristic: the share of pairs whose positive has
  /// the larger score, equal ones counted half. NaN without both classes, and for scores that are
  /// NaN. Time: of sorting.
  double area() const;
};

/// A sequence of a step.
struct StepItem {
  CorpusItem item;          ///< views that end with the corpus
  std::uint64_t epoch = 0;  ///< epoch of training, from 0
};

/// The loss of one network.
struct LossPart {
  std::string_view name;  ///< empty: there is but one
  double factor = 1;      ///< in the sum that is minimised; 0: reported, not learnt
  LossReport report;      ///< report of its rows
  bool judged = true;     ///< its rows are right or wrong; else reported by its name alone
};

/// So many of so many.
struct Share {
  std::string_view name;  ///< in logs: "fake_rate"
  Index count = 0;        ///< how many are so
  Index of = 0;           ///< how many there are
};

/// What a run over items found.
struct StepLosses {
  std::vector<LossPart> parts;  ///< the network that is kept is the last
  std::vector<Share> shares;    ///< what else was counted
  /// In an evaluation of a discriminator, its logits at replaced tokens (positive) and others.
  RankedScores detections;
  Index tokens = 0;  ///< that the kept network was trained on

  /// Σ factor · mean loss of a row.
  double mean() const;
  /// LossReport::accuracy of the network that is kept.
  double accuracy() const { return parts.empty() ? 0 : parts.back().report.accuracy(); }
  /// Number of rows with a loss of the network that is kept.
  Index rows() const { return parts.empty() ? 0 : parts.back().report.rows; }
  /// Adds what was found of other items: `other` is of the same loss, at the same stage.
  void add(const StepLosses& other);
  /// Replaces all but `detections` by the sums over all `ranks`, which call it
  /// together: each gives what it found of its own share of a batch.
  void sum(Ranks& ranks);
};

/// What an update minimises. Everything is a function of the parameters, the items and the step.
/// For one thread; kernels use all.
class StepLoss {
 public:
  StepLoss() = default;
  StepLoss(const StepLoss&) = delete;
  StepLoss& operator=(const StepLoss&) = delete;
  virtual ~StepLoss() = default;

  /// Sets the `ranks` of whose batches add_gradients() gets shares; they must stay. Without a call:
  /// one_rank().
  void set_ranks(Ranks& ranks) { ranks_ = &ranks; }

  /// Sets `sums`, which begin with gradients that get no more; they must stay. nullptr, as without
  /// a call: none.
  void set_sums(GradientSums* sums) { sums_ = sums; }

  /// Throws InputError or UsageError for a `corpus` with sequences that it cannot take.
  virtual void check(const Corpus& corpus) const = 0;
  /// Called once before update `step`, from 1: may change values where a stage begins.
  virtual void begin(std::int64_t step);
  /// After update `step`, which another process made, as its begin() left it but for the values.
  virtual void go_on(std::int64_t step);
  /// To be called before the first run, and after every change of the values.
  virtual void prepare() = 0;
  /// Adds what `items` have of the gradients of mean(), less what is rewarded
  /// (Network::reward_diversity), with `dropout`, to those of the parameters. `items` is the own
  /// share of a batch, and all ranks call it together: losses are those of the whole batch.
  virtual StepLosses add_gradients(std::span<const StepItem> items,
                                   const DropoutOptions& dropout) = 0;
  /// Returns the losses of `items`, without dropout and gradients. For one rank.
  virtual StepLosses evaluate(std::span<const StepItem> items) = 0;
  /// Whether update `step` changes the parameter of this index; else it stays as it is. `parameter`
  /// counts as in Parameters.
  virtual bool updates(Index parameter, std::int64_t step) const;

 protected:
  /// The ranks that set_ranks() was given.
  Ranks& ranks() const { return *ranks_; }
  /// Returns the RunOutputs::passed of `network`, a Network or Classifier that is the last one to
  /// add to gradients; empty for one rank.
  template <class N>
  std::function<void(Index)> passed(const N& network) const {
    if (sums_ == nullptr || ranks_->count() == 1) return {};
    return [sums = sums_, last = network.last_layers()](Index layer) { sums->passed(layer, last); };
  }

 private:
  GradientSums* sums_ = nullptr;
  Ranks* ranks_ = &one_rank();
};

/// Tells `network`, if it rewards diversity, over how many sequences of a batch the mean is, of
/// which `examples` are the own share. All `ranks` call it together, before Network::train().
template <class T>
void share_reward(Ranks& ranks, std::span<const Example> examples, Network<T>& network);

/// A network on the examples of an objective. All references must stay.
class ObjectiveLoss final : public StepLoss {
 public:
  /// For `network` on the examples of `objective`; both must stay.
  ObjectiveLoss(Network<float>& network, const Objective& objective)
      : network_(network), objective_(objective) {}

  void check(const Corpus& corpus) const override { objective_.check(corpus); }
  void prepare() override { network_.prepare(); }
  StepLosses add_gradients(std::span<const StepItem> items, const DropoutOptions& dropout) override;
  StepLosses evaluate(std::span<const StepItem> items) override;

 private:
  std::vector<Example> examples(std::span<const StepItem> items) const;

  Network<float>& network_;
  const Objective& objective_;
};

// Tables that the two networks of an objective have together.

/// The roles of the tables that can be shared: words, positions and segments.
inline constexpr std::array<model::Role, 3> kSharedTables{
    model::Role::kWordTable, model::Role::kPositionTable, model::Role::kSegmentTable};

/// Whether the table of `role` has the same shape and the same rows in the designs `own` and
/// `other`. Learned positions with another offset have other rows.
bool shares_table(model::Role role, const model::Design& own, const model::Design& other);

/// Returns those of the tables in `map`, a network of design `own`, that one of design `other` can
/// have too: for add_model.
ParameterMap shared_tables(const model::Design& own, const ParameterMap& map,
                           const model::Design& other);

}  // namespace masque::train
