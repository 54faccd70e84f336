// Linear probes of the hidden states of each layer: how well they predict the position, the token,
// the segment or a label of each token.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "evaluate/score/sequence.hpp"
#include "model/model.hpp"

namespace masque::evaluate {

/// What is predicted from the state of a token.
enum class ProbeTarget {
  kPosition,  ///< Sequence::positions, or the place in the sequence: a number
  kToken,     ///< its id, a class
  kSegment,   ///< Sequence::segments, a class; without them 0
  kLabel,     ///< Sequence::labels, a class for each token; −100: skipped
};

/// What StateProbe predicts, and from which states.
struct ProbeRequest {
  ProbeTarget target = ProbeTarget::kPosition;  ///< what is predicted
  /// Uses only states at tokens replaced by `mask`: a share `rate` of each text, at least one. The
  /// target token is the original one.
  bool at_mask = false;
  /// Share of tokens hidden with at_mask; tokens of the template are never hidden.
  double rate = 0.15;
  std::optional<TokenId> mask;  ///< the mask token; required with at_mask
  Index rows = 4000;            ///< states per layer to keep, from the first texts
  Index classes = 50;  ///< kToken: the most frequent tokens, ties by smaller id; others are ignored
  Index folds = 5;     ///< number of folds of cross-validation, at least 2
  double ridge = 1e-3;     ///< penalty, as ridge_predictions takes it
  std::uint64_t seed = 0;  ///< seed of the tokens that are hidden
};

/// The states after some layers.
struct ProbeRow {
  Index layer = 0;         ///< 0: the embeddings; N: after N layers
  std::uint64_t rows = 0;  ///< states that were used
  double r_squared = 0;    ///< r_squared() of cross-validated predictions, pooled over classes
  double accuracy = 0;  ///< position: rounded to the nearest; else the class with the largest value
  double baseline = 0;  ///< accuracy of always predicting the most frequent target
};

/// Collects states, then fits. Folds are whole texts. For one thread.
class StateProbe {
 public:
  /// `model` must outlive it. `request` says what is predicted. Throws InputError if there is no
  /// mask token where one is needed.
  StateProbe(const model::Model& model, const ProbeRequest& request);

  /// Enough rows were collected: more texts change nothing.
  bool full() const;
  /// Runs the text of `sequence`, unless full(), and keeps the states of its tokens, without those
  /// of the template. Memory: in all request.rows · (layers + 1) · hidden size floats. Throws as
  /// Model::run and check_one_stream() do, and InputError for a text without labels where these are
  /// the target.
  void add(const Sequence& sequence);
  /// One row for each layer, the embeddings first. Cost: ridge_predictions() of each. Throws
  /// InputError for fewer than two different targets, and if all texts are in one fold.
  std::vector<ProbeRow> fit() const;

 private:
  const model::Model& model_;
  ProbeRequest request_;
  std::vector<std::vector<float>> states_;  ///< states of each layer, row after row
  std::vector<Index> targets_;
  std::vector<Index> texts_;  ///< which text, counted from 0
  Index added_ = 0;
};

/// Result of the zero probe (kexue.fm/archives/9105): all tokens are the same, so states can differ
/// only by position.
struct ZeroRow {
  Index layer = 0;    ///< 0: the embeddings; N: after N layers
  double spread = 0;  ///< largest difference of a feature between two positions
  double scale = 0;   ///< largest |feature|
};

/// Runs `model` on `length` copies of `token`, without a template; a row for each layer. Position
/// schemes that act only on attention scores give spreads of rounding size (1e-12 in f64) under a
/// normalizer with rows that sum to 1. `mask` (length, length) replaces the model's own, which
/// leaves words to each text. Throws as Model::run.
std::vector<ZeroRow> zero_probe(const model::Model& model, TokenId token, Index length,
                                const std::optional<mask::Mask>& mask = std::nullopt);

}  // namespace masque::evaluate
