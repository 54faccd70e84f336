// The request of a length run, and one row of its result.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "length/subject.hpp"

namespace masque::length {

/// One row of the result: a design with a seed, scored at a length.
struct LengthRow {
  std::size_t arm = 0;     ///< number of the design, from 0
  std::uint64_t seed = 0;  ///< of training
  Index window = 0;        ///< keys at this distance or more are hidden; 0: none are
  Index length = 0;        ///< as the subject counts it: see LengthSubject::tokens
  bool finetuned = false;  ///< at this length, after its training
  double loss = 0;         ///< mean, nats a target
  double accuracy = 0;     ///< share of targets that are right
  double whole = 0;        ///< share of sequences whose targets are all right; NaN for texts
  Index targets = 0;       ///< number of scored targets

  bool operator==(const LengthRow&) const = default;
};

/// A short training at each of some other lengths. Each starts from the trained model, with a fresh
/// optimizer.
struct Finetuning {
  std::vector<Index> lengths;  ///< among those that are scored
  train::Schedule schedule;    ///< of each of them, in place of the training's
};

/// What run_lengths() trains and scores.
struct LengthRequest {
  const LengthSubject* subject = nullptr;  ///< must stay
  std::size_t arms = 0;                    ///< number of designs, at least 1
  std::vector<std::uint64_t> seeds;        ///< of training, for every design; at least one
  std::vector<Index> eval_lengths;         ///< that are scored; at least one
  std::vector<Index> windows{0};           ///< LengthRow::window of scoring; not of training
  /// A fine-tuned model is scored only at the length of its fine-tuning. The trained
  /// model is scored only at lengths with at most position_count() tokens.
  std::optional<Finetuning> finetuning;
  /// Only this one of the arms × seeds, from 0, seeds varying fastest; needs `steps`.
  std::optional<std::size_t> only;
  /// Keeps models in folder/models; a cell without its model is trained again.
  bool keep_models = false;
  /// Returns the model and training of an arm; RunOptions::settings must have all that decides the
  /// result. Must be set.
  std::function<train::RunOptions(std::size_t arm, std::int64_t steps, std::uint64_t seed)> options;
  /// Training steps of every arm; none: as many as fit into `budget_seconds` for all arms and
  /// seeds.
  std::optional<std::int64_t> steps;
  double budget_seconds = 0;  ///< wall time of the whole run, scoring included; without `steps`
  double spent_seconds = 0;   ///< part of the budget that was spent before the call
  std::string folder;         ///< of results, checkpoints and models: see LengthStore
  /// Gets a line for the user; must be set.
  std::function<void(const std::string&)> note;
};

}  // namespace masque::length
