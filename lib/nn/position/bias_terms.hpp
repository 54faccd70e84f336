// Position terms of scores that are a ScoreBias, and of pairs in plain loops.
#pragma once

#include <functional>
#include <memory>
#include <utility>

#include "nn/position_scheme.hpp"

namespace masque::nn {

/// Terms whose pairs are computed one by one.
template <class T>
class PairBias final : public HeadBias<T> {
 public:
  using Value = std::function<T(Index query, Index key)>;
  explicit PairBias(Value value) : value_(std::move(value)) {}
  void add(mask::Range queries, mask::Range keys, MatrixView<T> scores) const override {
    for (Index i = 0; i < queries.size(); ++i) {
      for (Index j = 0; j < keys.size(); ++j) {
        scores.at(i, j) += value_(queries.begin + i, keys.begin + j);
      }
    }
  }

 private:
  Value value_;
};

/// Terms that depend on the distance alone: `bias` adds them, `slope` gets the gradient d of each
/// pair and adds to the gradients of parameters (empty: nothing is trained).
template <class T>
class OffsetTerms final : public PositionTerms<T>, public ScoreTermsGradient<T> {
 public:
  /// offset = key place − query place.
  using Slope = std::function<void(Index head, Index offset, const T& d)>;
  OffsetTerms(std::unique_ptr<ScoreBias<T>> bias, const PositionIds& places, Slope slope = {})
      : bias_(std::move(bias)), places_(places), slope_(std::move(slope)) {}

  const ScoreBias<T>* bias() const override { return bias_.get(); }
  ScoreTermsGradient<T>* bias_gradient() override { return this; }

  void backward(Index head, MatrixView<const T> /*query*/, MatrixView<const T> /*key*/,
                MatrixView<const T> d_scores, MatrixView<T> /*d_query*/,
                MatrixView<T> /*d_key*/) override {
    if (!slope_) return;
    for (Index i = 0; i < d_scores.rows; ++i) {
      const Index query = places_.queries[static_cast<std::size_t>(i)];
      for (Index j = 0; j < d_scores.columns; ++j) {
        slope_(head, places_.keys[static_cast<std::size_t>(j)] - query, d_scores.at(i, j));
      }
    }
  }

 private:
  std::unique_ptr<ScoreBias<T>> bias_;
  PositionIds places_;
  Slope slope_;
};

}  // namespace masque::nn
