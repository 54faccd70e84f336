// Many small runs of a model as few large ones, in bounded memory.
#pragma once

#include <optional>
#include <vector>

#include "model/model.hpp"

namespace masque::probe {

/// One sequence to run, and where its numbers go.
struct Job {
  std::vector<TokenId> ids;
  std::vector<Index> segments;           ///< empty: 0
  std::optional<mask::Mask> mask;        ///< none: the model's
  std::optional<mask::Mask> query_mask;  ///< two streams
  std::vector<Index> rows;               ///< of this sequence, ascending
  std::vector<TokenId> targets;  ///< one a row: log-probabilities are wanted; empty: one logit
  std::vector<double*> out;      ///< one a row; must stay until the job has run
};

/// Collects jobs and runs them together before the next one would pass `batch_tokens` tokens; a
/// longer job runs alone. Models do not pad, so jobs need no sorting by length, and what a job
/// gives does not depend on the others.
class JobRunner {
 public:
  JobRunner(const model::Model& model, Index batch_tokens)
      : model_(model), batch_tokens_(batch_tokens) {}

  /// Adds a job; if the batch would pass the budget, it is run first. Jobs with and without
  /// targets must not share a runner.
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
  std::uint64_t done_ = 0;
};

}  // namespace masque::probe
