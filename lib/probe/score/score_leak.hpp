// Does a one-pass score read what it predicts?
#pragma once

#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

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

  /// Where no masks are given: throws InputError if the model leaks. Its own masks treat all
  /// positions by the same rule, so 16 tokens stand for all lengths.
  void start() const;

  /// Where masks are given: throws UsageError that names the length and the pair if texts of
  /// `length` tokens leak. Masks that are clean by themselves, or leak, are recognized by their
  /// cells; only keys of the layer before under queries without their token need more, and are
  /// refused beyond 512 tokens. Cost: once a length, as much as the masks' borders, or that of
  /// follow_flow.
  void at(Index length);

  /// Whether the masks leave words or a seed to each text: then at() knows nothing.
  bool open() const;
  /// The mask of a text with words of these lengths, after the same test. Throws UsageError for a
  /// list of masks.
  mask::Mask close(std::span<const Index> words) const;

 private:
  /// A position, the token that it reads, and by which path.
  using MaskedPath = std::pair<std::pair<Index, Index>, std::string>;
  void refuse(const std::vector<mask::MaskLayer>& masks, const std::optional<MaskedPath>& leak,
              Index length) const;

  ScoreKind kind_;
  const model::Design& design_;
  model::ModelOptions options_;
  std::set<Index> clean_;
};

}  // namespace masque::probe
