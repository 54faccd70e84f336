// Runs many short sequences in few large batches, in bounded memory.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "model/model.hpp"

namespace masque::evaluate {

/// Receives the logits of a job's row; `row` is its index in Job::rows. The view is valid during
/// the call only. Rows of different jobs may come from several threads at once.
using TakeLogits = std::function<void(std::size_t row, std::span<const double> logits)>;

/// Receives the detector's probability for each token of a job. The view is valid during the call
/// only. Different jobs may come from several threads at once.
using TakeDetections = std::function<void(std::span<const double> probabilities)>;

/// A set of tokens: element i is 1 if id i is in it; ids beyond the end are not.
using TokenSet = std::vector<std::uint8_t>;

/// One sequence to run, and where its results go.
struct Job {
  std::vector<TokenId> ids;              ///< ids of the tokens
  std::vector<Index> positions;          ///< empty: 0, 1, …
  std::vector<Index> segments;           ///< empty: 0
  std::vector<TokenId> source;           ///< for the encoder of an encoder–decoder; else empty
  std::optional<mask::Mask> mask;        ///< none: the model's
  std::optional<mask::Mask> query_mask;  ///< two streams
  std::vector<Index> rows;               ///< rows of this sequence, ascending
  std::vector<TokenId> targets;          ///< one per row: gives log-probabilities; empty: one logit
  std::vector<double*> out;              ///< one per row; must stay valid until the job has run
  TakeLogits take;                       ///< gives all logits; not with targets and out
  TakeDetections take_detections;        ///< with `take`, of a model with a detector; or none
  /// With targets and a runner that has sets: one per row, for the log-probability of each set.
  std::vector<double*> set_out;
};

/// Collects jobs and runs them in one batch before the next job would exceed `batch_tokens` tokens;
/// a longer job runs alone. Models do not pad, so jobs need no sorting by length, and the results
/// of a job do not depend on the others.
class JobRunner {
 public:
  /// Runs `model`, which must outlive it, on at most `batch_tokens` tokens at a time. `sets`: for
  /// these, jobs with targets also get the probability that a row's token is in the set.
  /// `excluded`: a token that gets the probability 0 and is no target; not with sets.
  JobRunner(const model::Model& model, Index batch_tokens, std::vector<TokenSet> sets = {},
            std::optional<TokenId> excluded = std::nullopt)
      : model_(model), batch_tokens_(batch_tokens), sets_(std::move(sets)), excluded_(excluded) {}

  /// Adds a job; runs the batch first if it would exceed the budget. A runner must get only jobs
  /// with targets, only jobs that take logits, or only others. Throws as Model::run does.
  void add(Job job);
  /// Runs the jobs that are waiting. Throws as Model::run does.
  void run();
  /// Jobs that have run so far.
  std::uint64_t done() const { return done_; }

 private:
  const model::Model& model_;
  Index batch_tokens_;
  model::Batch batch_;
  Index tokens_ = 0;  ///< of the batch, and of its sources
  model::Request request_;
  std::vector<double*> out_;
  std::vector<TakeLogits> takes_;  ///< one a sequence
  std::vector<TakeDetections> take_detections_;
  std::vector<Index> first_rows_;  ///< first rows of each sequence, among request_.rows
  std::vector<TokenSet> sets_;
  std::optional<TokenId> excluded_;
  std::vector<double*> set_out_;
  std::uint64_t done_ = 0;
};

// Logits of a model as rows of double, whatever the model computes in.

/// An observer that takes logits one row at a time, as double: f32 and bf16 models give float. The
/// calls of take() come from the threads from which Observer::logits is called.
class LogitRowObserver : public model::Observer {
 public:
  void logits(Index sequence, Index first, MatrixView<const float> rows) final;
  /// Hands each row to take().
  void logits(Index sequence, Index first, MatrixView<const double> rows) final;

 protected:
  /// Takes a row of `sequence`. `row`: its place among Request::rows; `logits`: a view that ends
  /// with the call.
  virtual void take(Index sequence, Index row, std::span<const double> logits) = 0;
};

}  // namespace masque::evaluate
