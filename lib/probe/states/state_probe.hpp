// What can be read from the states of each layer by a linear map: the position, the token, the
// segment, a label of each token.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "model/model.hpp"
#include "probe/score/sequence.hpp"

namespace masque::probe {

enum class ProbeTarget {
  kPosition,
  kToken,
  kSegment,
  kLabel,  ///< Sequence::labels, a class for each token; −100: not looked at
};

struct ProbeRequest {
  ProbeTarget target = ProbeTarget::kPosition;
  /// Only states at tokens that were hidden by `mask`: a share `rate` of each text, at least one.
  /// Their target token is the one that was hidden.
  bool at_mask = false;
  double rate = 0.15;
  std::optional<TokenId> mask;
  Index rows = 4000;  ///< states a layer that are kept; those of the first texts
  Index classes =
      50;  ///< kToken: the most frequent tokens, ties to smaller ids; others are left out
  Index folds = 5;
  double ridge = 1e-3;  ///< penalty, as ridge_predictions takes it
  std::uint64_t seed = 0;
};

/// One layer; 0 is the embeddings.
struct ProbeRow {
  Index layer = 0;
  std::uint64_t rows = 0;
  double r_squared = 0;
  double accuracy = 0;  ///< position: rounded to the nearest; else the class with the largest value
  double baseline = 0;  ///< accuracy of always saying the most frequent target
};

/// Collects states, then fits. Folds are whole texts. For one thread.
class StateProbe {
 public:
  /// `model` must stay. Throws InputError if there is no mask token where one is needed.
  StateProbe(const model::Model& model, const ProbeRequest& request);

  /// Enough rows were collected: more texts change nothing.
  bool full() const;
  /// Runs a text and keeps the states of its tokens, without those of the template. Memory: in all
  /// request.rows · (layers + 1) · hidden size floats. Throws as Model::run does, and InputError
  /// for a text without labels where these are the target.
  void add(const Sequence& sequence);
  /// Throws InputError for less than two texts, and less than two targets.
  std::vector<ProbeRow> fit() const;

 private:
  const model::Model& model_;
  ProbeRequest request_;
  std::vector<std::vector<float>> states_;  ///< of each layer, row after row
  std::vector<Index> targets_;
  std::vector<Index> texts_;  ///< which text, counted from 0
  Index added_ = 0;
};

/// The zero probe (kexue.fm/archives/9105): every token is the same, so that only positions can
/// make states differ.
struct ZeroRow {
  Index layer = 0;
  double spread = 0;  ///< largest difference of a feature between two positions
  double scale = 0;   ///< largest |feature|
};

/// Runs `length` copies of `token`, without a template. Schemes that act on scores alone leave
/// every spread at rounding (1e-12 in f64) under a normalizer whose rows add up to 1. Throws as
/// Model::run.
std::vector<ZeroRow> zero_probe(const model::Model& model, TokenId token, Index length);

}  // namespace masque::probe
