// Masked-language-model training as dropout: compares the average of a model's predictions over
// many corruptions with the unchanged model and with averaged embeddings (embed-fix mlm-correct).
// Su Jianlin 2021, kexue.fm/archives/8770.
#pragma once

#include <optional>
#include <vector>

#include "probe/score/corrupt.hpp"
#include "probe/statistics/ratio_mean.hpp"

namespace masque::probe {

struct AverageRequest {
  std::vector<double> rates;   ///< of tokens that are corrupted, in (0, 1]
  std::vector<Index> samples;  ///< K: corruptions that are averaged, ascending
  double evaluated = 0.25;     ///< share of the tokens that are predicted, and never corrupted
  /// Shares of corrupted tokens that are masked and that are replaced by random tokens (BERT's
  /// split); the rest stay unchanged.
  double mask_share = 0.8, random_share = 0.1;
  TokenId mask = 0;
  std::uint64_t seed = 0;
  Index batch_tokens = 8192;
};

/// A rate and K, over the evaluated tokens.
struct AverageRow {
  double rate = 0;
  Index samples = 0;
  RatioMean raw_loss, corrected_loss, average_loss;  ///< −log p of the original token
  RatioMean raw_hits, corrected_hits, average_hits;  ///< it has the highest probability
  RatioMean from_raw, from_corrected;  ///< KL(average ‖ raw), KL(average ‖ corrected), nats
};

/// For one thread.
class ModelAverage {
 public:
  /// `model` has a masked head; `corrected` is the same with a corrected input table, or nullptr.
  /// Both must outlive this. Throws InputError for another head, and for a corrected model with
  /// another vocabulary, family or size.
  ModelAverage(const model::Model& model, const model::Model* corrected,
               const AverageRequest& request);

  /// Cost: 2 passes, and one for each rate and sample. Memory: (evaluated tokens, vocabulary) for
  /// each rate, thrice. Throws InputError for a sequence with a mask of its own, and as Model::run.
  void add(const Sequence& sequence);
  const std::vector<AverageRow>& rows() const { return rows_; }

 private:
  Sequence sample(const Sequence& sequence, std::span<const double> numbers, double rate,
                  Index k) const;

  const model::Model& model_;
  const model::Model* corrected_;
  AverageRequest request_;
  std::vector<AverageRow> rows_;  ///< by rate, then samples
};

}  // namespace masque::probe
