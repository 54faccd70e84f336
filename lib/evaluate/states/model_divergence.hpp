// How far two models of equal shape are apart on texts, for example a model and its quantised copy:
// states and attention layer by layer, and predictions.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "base/string/name_table.hpp"
#include "evaluate/score/sequence.hpp"
#include "evaluate/statistics/summary.hpp"
#include "model/model.hpp"

namespace masque::evaluate {

/// What of two models is compared.
enum class ComparedPart {
  kStates,       ///< states in front of and after each layer
  kAttention,    ///< weights of each head
  kPredictions,  ///< distributions over the vocabulary
};
/// "states", "attention", "predictions".
NameTable<ComparedPart> compared_part_names();

/// A number that says how far apart two models are, P being the first one.
enum class DivergenceMeasure {
  kDistance,           ///< of states: |a − b| / |a|, a those of the first model
  kCosine,             ///< of states
  kAttention,          ///< of the weights of a query: ½ Σ |a − b|
  kKl,                 ///< KL(P ‖ Q) of predictions, nats
  kAgreement,          ///< share of predictions with the same most probable token
  kPerplexity,         ///< of the first model: e to the mean of −log p of the next token
  kPerplexityAgainst,  ///< of the second one
  kPerplexityRatio,    ///< of the second one in parts of that of the first one
};
/// The names of all measures: "distance", "cosine", "attention", "kl", "agreement", "perplexity",
/// "perplexity_against", "perplexity_ratio".
NameTable<DivergenceMeasure> divergence_measure_names();

/// What ModelDivergence compares.
struct DivergenceRequest {
  std::vector<ComparedPart> parts;  ///< at least one
  /// Whether predictions are of the next token, which they do not read: they have a perplexity.
  bool next_token = false;
  Index batch_tokens = 8192;  ///< most tokens of a batch; a longer text runs alone
};

/// Numbers of tokens in short.
struct MeasuredMean {
  RatioMean mean;  ///< over tokens, with a standard error over texts
  /// The largest number of a token or, of cosines, the smallest; nothing of none.
  std::optional<double> worst;

  /// Adds a text with `count` numbers of the sum `sum`, the worst of which is `extreme`; `least`:
  /// smaller ones are worse. Nothing if `count` is 0.
  void add(double sum, double count, double extreme, bool least = false);
};

/// A measure of a part of the models over all texts.
struct DivergenceRow {
  DivergenceMeasure measure = DivergenceMeasure::kDistance;  ///< what the numbers are
  /// Of states, after how many layers; of attention, of which one; else none.
  std::optional<Index> layer;
  std::optional<Index> head;  ///< of attention; none: over all heads of the layer
  MeasuredMean numbers;       ///< perplexities as their logarithms

  /// The mean; of perplexities e to the mean.
  double value() const;
  /// The interval of the value at kIntervalLevel over texts, by Student's t and within the range of
  /// the measure; nothing of fewer than two texts.
  std::optional<Interval> interval() const;
  /// The worst number of a token; none of perplexities, whose tokens have none.
  std::optional<double> worst() const;
};

/// Compares two models on texts. For one thread; kernels use all.
class ModelDivergence {
 public:
  /// Compares `second` with `first`, as `request` says; both must outlive it. Predictions are left
  /// out if the head has no vocabulary. Throws UsageError for models of different precision;
  /// InputError (message only) for different numbers of layers, hidden sizes, heads, vocabularies,
  /// kinds of heads or streams.
  ModelDivergence(const model::Model& first, const model::Model& second,
                  const DivergenceRequest& request);
  ~ModelDivergence();
  ModelDivergence(const ModelDivergence&) = delete;
  ModelDivergence& operator=(const ModelDivergence&) = delete;

  /// Adds a text: `first` for the first model and `second`, with the same ids (a MASQUE_CHECK), for
  /// the second one; predictions are those of tokens between prefix and suffix. Runs it with others
  /// of the batch. Memory of a batch: what the request compares of the first model's states,
  /// attention weights and logits. Throws InputError as check_one_stream(), and as Model::run does.
  void add(Sequence first, Sequence second);
  /// Runs what waits. Throws as add().
  void flush();
  /// One for each measure, part and head, over the texts that ran: states from the embeddings on,
  /// then layers and their heads, then predictions.
  std::vector<DivergenceRow> rows() const;

 private:
  struct Numbers;
  struct Text;
  template <class T>
  class Comparer;
  template <class T>
  void run(std::vector<Text>& texts);
  bool compares(ComparedPart part) const;
  void take(const Text& text);

  const model::Model& first_;
  const model::Model& second_;
  DivergenceRequest request_;
  std::size_t heads_ = 0;
  std::vector<std::pair<Sequence, Sequence>> waiting_;
  Index waiting_tokens_ = 0;
  std::vector<MeasuredMean> distance_, cosine_;  ///< by state
  std::vector<MeasuredMean> layers_, heads_of_;  ///< by layer, and by layer and head
  MeasuredMean kl_, agreement_, loss_, loss_against_, loss_change_;
};

}  // namespace masque::evaluate
