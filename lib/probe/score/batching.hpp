// Many small runs of a model as few large ones, in bounded memory.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "model/model.hpp"

namespace masque::probe {

/// Gets the logits of one of a job's rows, by its place among them; a view that ends with the call.
/// Rows of different jobs may come from several threads at once.
using TakeLogits = std::function<void(std::size_t row, std::span<const double> logits)>;

/// Gets what a model's detector gives to each token of a job; a view that ends with the call.
/// Different jobs may come from several threads at once.
using TakeDetections = std::function<void(std::span<const double> probabilities)>;

/// Tokens by their ids: 1 for those of the set; beyond the end there are none.
using TokenSet = std::vector<std::uint8_t>;

/// One sequence to run, and where its numbers go.
struct Job {
  std::vector<TokenId> ids;
  std::vector<Index> positions;          ///< empty: 0, 1, …
  std::vector<Index> segments;           ///< empty: 0
  std::optional<mask::Mask> mask;        ///< none: the model's
  std::optional<mask::Mask> query_mask;  ///< two streams
  std::vector<Index> rows;               ///< of this sequence, ascending
  std::vector<TokenId> targets;    ///< one a row: log-probabilities are wanted; empty: one logit
  std::vector<double*> out;        ///< one a row; must stay until the job has run
  TakeLogits take;                 ///< all logits are wanted: without targets and out
  TakeDetections take_detections;  ///< with `take`, of a model with a detector; or none
  /// With targets and sets of the runner: one a row, where the log-probability of each set goes.
  std::vector<double*> set_out;
};

/// Collects jobs and runs them together before the next one would pass `batch_tokens` tokens; a
/// longer job runs alone. Models do not pad, so jobs need no sorting by length, and what a job
/// gives does not depend on the others.
class JobRunner {
 public:
  /// `sets`: how likely one of these tokens is at the rows of jobs with targets. `excluded`: a
  /// token with the probability 0, no target; not with sets.
  JobRunner(const model::Model& model, Index batch_tokens, std::vector<TokenSet> sets = {},
            std::optional<TokenId> excluded = std::nullopt)
      : model_(model), batch_tokens_(batch_tokens), sets_(std::move(sets)), excluded_(excluded) {}

  /// Adds a job; if the batch would pass the budget, it is run first. Jobs with targets, those
  /// that take logits and the others must not share a runner.
  void add(Job job);
  /// Runs what is left.
  void run();
  /// Jobs that have run so far.
  std::uint64_t done() const { return done_; }

 private:
  const model::Model& model_;
  Index batch_tokens_;
  model::Batch batch_;
  model::Request request_;
  std::vector<double*> out_;
  std::vector<TakeLogits> takes_;  ///< one a sequence
  std::vector<TakeDetections> take_detections_;
  std::vector<Index> first_rows_;  ///< of each sequence, among request_.rows
  std::vector<TokenSet> sets_;
  std::optional<TokenId> excluded_;
  std::vector<double*> set_out_;
  std::uint64_t done_ = 0;
};

}  // namespace masque::probe
