// How far two models are from each other on texts: logits, and hidden states of a wider model.
#pragma once

#include <functional>
#include <optional>
#include <span>

#include "model/model.hpp"

namespace masque::grow {

/// The largest differences over all tokens so far.
struct ModelDifference {
  std::uint64_t sequences = 0;   ///< compared
  std::uint64_t tokens = 0;      ///< of all sequences
  std::optional<double> logits;  ///< largest |difference| of logits; nothing if models have no head
  double largest_logit = 0;      ///< largest |logit| of the first model
  /// Largest |difference| of hidden states, where the hidden size of the second model is a multiple
  /// of the first one's and it has as many copies of each state, next to each other: of models with
  /// a head and as many layers all but the last, which a norm may have divided; without a head the
  /// last ones, and of as many layers all. Nothing else.
  std::optional<double> states;
  double largest_state = 0;  ///< largest |state| of the first model, of those compared
};

/// A model that is compared. It must outlive the comparison.
struct ComparedModel {
  const model::Model& model;  ///< opened
  /// What a sequence of these ids may read, of a model whose mask leaves words to each text; empty:
  /// the model's own mask.
  std::function<mask::Mask(std::span<const TokenId> ids)> mask_of = {};
};

/// Runs both models on sequences, one at a time. For one thread; kernels use
/// all. NaN counts as the largest difference.
class ModelComparison {
 public:
  /// Compares `second`, which may be larger, with `first`. Throws UsageError for models of
  /// different vocabularies or kinds of heads.
  ModelComparison(const ComparedModel& first, const ComparedModel& second);

  /// Adds a sequence: `ids`, and one segment an id in `segments` (empty: 0); nothing without ids.
  /// Every position reads what the model's own mask lets through. Memory: logits and states of the
  /// sequence, of both models. Throws as model::Model::run and mask_of.
  void add(std::span<const TokenId> ids, std::span<const Index> segments);
  /// The differences so far: a reference into this object.
  const ModelDifference& result() const { return result_; }

 private:
  ComparedModel first_;
  ComparedModel second_;
  bool logits_ = false;
  Index copies_ = 0;  ///< of a state in the second model; 0: states are not compared
  bool same_layers_ = false;
  ModelDifference result_;
};

/// Compares `second` with `first` without a tokenizer, on four sequences of at most 64 tokens that
/// `seed` draws from the vocabulary, padding excluded. Where a mask needs words, all are of two
/// tokens, but for a last one. Throws as ModelComparison.
ModelDifference compare_on_drawn_tokens(const model::Model& first, const model::Model& second,
                                        std::uint64_t seed);

}  // namespace masque::grow
