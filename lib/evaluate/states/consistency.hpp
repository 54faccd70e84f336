// The gap between pre-training and use: how much a model's states and predictions at unchanged
// tokens move when other tokens are masked, dropped or replaced.
#pragma once

#include <optional>
#include <vector>

#include "evaluate/score/corrupt.hpp"
#include "evaluate/statistics/summary.hpp"

namespace masque::evaluate {

/// What Consistency compares.
struct ConsistencyRequest {
  std::vector<TokenNoise> corruptions;  ///< each at every rate
  std::vector<double> rates;            ///< in (0, 1]
  std::optional<TokenId> mask;          ///< the mask token, for kMask
  std::uint64_t seed = 0;               ///< seed of selection and random tokens
  Index batch_tokens = 8192;            ///< most tokens of a batch; a longer copy runs alone
};

/// One corruption at one rate, over tokens that were not selected, in lines where one was.
struct ConsistencyRow {
  TokenNoise corruption = TokenNoise::kNone;  ///< what became of the selected tokens
  double rate = 0;                            ///< share of the tokens that are selected
  RatioMean distance;         ///< distance of last states: |a − b| / |b|, b without corruption
  RatioMean cosine;           ///< cosine of last states
  RatioMean divergence;       ///< KL(without ‖ with) of the predictions, nats
  RatioMean total_variation;  ///< ½ Σ |p − q|
  std::uint64_t whole_lines = 0;  ///< further lines, of which every token was selected
};

/// Compares each text with its corrupted copies. Predictions are compared if the head has a
/// vocabulary, else their rows stay empty. For one thread.
class Consistency {
 public:
  /// `model` must outlive it. `request` has corruptions, rates and mask token. Throws InputError if
  /// there is no mask token for kMask.
  Consistency(const model::Model& model, const ConsistencyRequest& request);

  /// Runs the text of `sequence` unchanged and with every corruption. Memory: its predictions,
  /// (tokens, vocabulary) twice. Throws InputError as check_one_stream(), and as Model::run does.
  void add(const Sequence& sequence);
  /// One for each corruption and rate, in the order requested, over the texts so far.
  const std::vector<ConsistencyRow>& rows() const { return rows_; }

 private:
  const model::Model& model_;
  ConsistencyRequest request_;
  std::vector<ConsistencyRow> rows_;
};

}  // namespace masque::evaluate
