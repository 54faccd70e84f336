// How far two models are from each other on texts: logits, and hidden states of a wider model.
#pragma once

#include <optional>
#include <span>

#include "model/model.hpp"

namespace masque::grow {

/// The largest differences over all tokens so far.
struct ModelDifference {
  std::uint64_t sequences = 0;
  std::uint64_t tokens = 0;
  /// Of logits, and the largest logit of the first model; nothing if one has no head.
  std::optional<double> logits;
  double largest_logit = 0;
  /// Of hidden states, where the second model has as many copies of each state, next to each other:
  /// of models with a head and as many layers all but the last, which a norm may have divided;
  /// without a head the last ones, and of as many layers all. Nothing else.
  std::optional<double> states;
  double largest_state = 0;
};

/// Runs both models on sequences, one at a time. They must stay. For one thread; kernels use all.
class ModelComparison {
 public:
  /// Throws UsageError for models of different vocabularies or kinds of heads.
  ModelComparison(const model::Model& first, const model::Model& second);

  /// Every position reads what the model's own mask lets through. Memory: logits and states of the
  /// sequence, of both models.
  void add(std::span<const TokenId> ids, std::span<const Index> segments);
  const ModelDifference& result() const { return result_; }

 private:
  const model::Model& first_;
  const model::Model& second_;
  bool logits_ = false;
  Index copies_ = 0;  ///< of a state in the second model; 0: states are not compared
  bool same_layers_ = false;
  ModelDifference result_;
};

/// Compares models without a tokenizer, on four sequences of at most 64 tokens that are drawn from
/// the vocabulary. Throws as ModelComparison.
ModelDifference compare_on_drawn_tokens(const model::Model& first, const model::Model& second,
                                        std::uint64_t seed);

}  // namespace masque::grow
