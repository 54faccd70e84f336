// Does a one-pass score read what it predicts?
#pragma once

#include <set>

#include "model/model.hpp"
#include "probe/score/score_kind.hpp"

namespace masque::probe {

/// Whether a model of one stream keeps from each position the token that it predicts: with kTta
/// its own, with kCausal every later one. Not guessed from names: dependence is followed through
/// the masks of all layers (mask/flow.hpp). For one thread.
class ScoreLeak {
 public:
  /// `options` are those with which the model was opened. `design` must stay.
  ScoreLeak(ScoreKind kind, const model::Design& design, const model::ModelOptions& options);

  /// Where no masks are given: throws InputError if the model leaks. Its own masks treat positions
  /// alike, so 16 tokens stand for all lengths.
  void start() const;

  /// Where masks are given: throws UsageError that names the length and the pair if texts of
  /// `length` tokens leak. Masks that are clean by themselves, or leak, are recognized by their
  /// cells; only keys of the layer before under queries without their token need more, and are
  /// refused beyond 512 tokens. Cost: once a length, as much as the masks' borders, or that of
  /// follow_flow.
  void at(Index length);

 private:
  ScoreKind kind_;
  const model::Design& design_;
  model::ModelOptions options_;
  std::set<Index> clean_;
};

}  // namespace masque::probe
