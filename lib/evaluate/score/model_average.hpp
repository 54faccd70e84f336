// Masked-language-model training as dropout: compares the average of a model's predictions over
// many corruptions with the unchanged model and with averaged embeddings (embed-fix mlm-correct).
// Su Jianlin 2021, kexue.fm/archives/8770.
#pragma once

#include <optional>
#include <vector>

#include "base/string/name_table.hpp"
#include "evaluate/score/corrupt.hpp"
#include "evaluate/statistics/summary.hpp"

namespace masque::evaluate {

/// What happens to the tokens that are predicted.
enum class PredictedTokens {
  kVisible,    ///< they are never corrupted
  kMasked,     ///< they are always the mask token, for the models that are compared, too
  kCorrupted,  ///< they are corrupted as the others are, but not for the models that are compared
};
/// "visible", "masked", "corrupted".
NameTable<PredictedTokens> predicted_token_names();

/// What ModelAverage compares.
struct AverageRequest {
  std::vector<double> rates;   ///< shares of tokens that are corrupted, in (0, 1]
  std::vector<Index> samples;  ///< K: corruptions that are averaged, ascending
  double evaluated = 0.25;     ///< share of the tokens that are predicted
  PredictedTokens predicted = PredictedTokens::kVisible;  ///< what happens to these
  double mask_share = 0.8,    ///< share of the corrupted tokens that are masked (BERT's split)
      random_share = 0.1;     ///< share of them that become random tokens; the rest stay
  TokenId mask = 0;           ///< the mask token
  std::uint64_t seed = 0;     ///< seed of evaluated tokens and corruptions
  Index batch_tokens = 8192;  ///< most tokens of a batch; a longer text runs alone
};

/// A rate and K, over the evaluated tokens.
struct AverageRow {
  double rate = 0;     ///< share of tokens that are corrupted
  Index samples = 0;   ///< K, how many predictions are averaged
  RatioMean raw_loss,  ///< −log p of the original token, nats, by the model on the unchanged text
      corrected_loss,  ///< the same by the corrected model
      average_loss;    ///< the same by the average
  RatioMean raw_hits,  ///< share of tokens whose original has the highest probability
      corrected_hits,  ///< the same by the corrected model
      average_hits;    ///< the same by the average
  RatioMean from_raw,  ///< KL(average ‖ raw), nats
      from_corrected;  ///< KL(average ‖ corrected), nats
};

/// Compares the predictions of texts. For one thread.
class ModelAverage {
 public:
  /// `model` has a masked head; `corrected` is the same with a corrected input table, or nullptr.
  /// Both must outlive this. The samples of `request` are at least 1. Throws InputError for another
  /// head, and for a corrected model with another vocabulary, family or size.
  ModelAverage(const model::Model& model, const model::Model* corrected,
               const AverageRequest& request);

  /// Adds the text of `sequence`. Cost: 2 passes, and one for each rate and sample. Memory:
  /// (evaluated tokens, vocabulary) for each rate, thrice. Throws InputError as check_one_stream(),
  /// and as Model::run.
  void add(const Sequence& sequence);
  /// By rate, then samples, over the texts so far. Without a corrected model its means are empty.
  const std::vector<AverageRow>& rows() const { return rows_; }

 private:
  Sequence sample(const Sequence& sequence, std::span<const double> numbers, double rate,
                  Index k) const;

  const model::Model& model_;
  const model::Model* corrected_;
  AverageRequest request_;
  std::vector<AverageRow> rows_;  ///< by rate, then samples
};

}  // namespace masque::evaluate
