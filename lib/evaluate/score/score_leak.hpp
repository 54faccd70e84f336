// Checks that a one-pass score does not read the tokens that it predicts.
#pragma once

#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "evaluate/score/score_kind.hpp"
#include "model/model.hpp"

namespace masque::evaluate {

/// Checks that in a model of one stream no position depends on a token that it must not read: with
/// kTta its own, with kCausal every later one. Follows dependence through the masks of all layers
/// (mask/flow.hpp). For one thread.
class ScoreLeak {
 public:
  /// Checks scores of `kind` by a model of `design`, which must outlive this. `options` are those
  /// with which the model was opened.
  ScoreLeak(ScoreKind kind, const model::Design& design, const model::ModelOptions& options);

  /// Names the score `name` in messages, which is the option `kind` with its value by default.
  void set_name(std::string name) { name_ = std::move(name); }

  /// Without masks in the options: throws InputError if the model leaks. Its own masks have the
  /// same rule for all positions, so the check uses 16 tokens for all lengths.
  void start() const;

  /// With masks in the options: throws UsageError that names the length, the position and the token
  /// if texts of `length` tokens leak. Most leaks are found from the cells of the masks. Only
  /// queries without their token that read keys of the layer before need follow_flow(); these are
  /// refused beyond 512 tokens. Cost, once for each length: the borders of the masks, or
  /// follow_flow().
  void at(Index length);

  /// Whether the masks depend on the words of each text or on a seed: then at() checks nothing.
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
  std::string name_;
  const model::Design& design_;
  model::ModelOptions options_;
  std::set<Index> clean_;
};

}  // namespace masque::evaluate
