// Position terms of scores that are a ScoreBias, and of pairs in plain loops.
#pragma once

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "nn/position/offset_bias.hpp"
#include "nn/position/position_scheme.hpp"

namespace masque::nn {

/// Terms whose pairs are computed one by one.
template <class T>
class PairBias final : public HeadBias<T> {
 public:
  /// The term of a pair, by the indices of query and key in the sequence.
  using Value = std::function<T(Index query, Index key)>;
  /// Terms `value`(i, j), which must be thread-safe.
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

/// Terms that depend on the distance alone, with their backward pass.
template <class T>
class OffsetTerms final : public PositionTerms<T>, public ScoreTermsGradient<T> {
 public:
  /// Adds `d`, the gradient by the terms of `head` with `offset` = key position − query
  /// position, to the gradients of parameters. It gets the gradients of pairs one by one, or
  /// summed over those of an offset.
  using Slope = std::function<void(Index head, Index offset, const T& d)>;
  /// `bias` adds the terms for `positions`, `slope` gets their gradients; empty: nothing is
  /// trained. The arrays of positions are borrowed.
  OffsetTerms(std::unique_ptr<ScoreBias<T>> bias, const PositionIds& positions, Slope slope = {})
      : bias_(std::move(bias)), positions_(positions), slope_(std::move(slope)) {}

  const ScoreBias<T>* bias() const override { return bias_.get(); }
  ScoreTermsGradient<T>* bias_gradient() override { return this; }

  void backward(Index head, MatrixView<const T> /*query*/, MatrixView<const T> /*key*/,
                MatrixView<const T> d_scores, MatrixView<T> /*d_query*/,
                MatrixView<T> /*d_key*/) override {
    if (!slope_ || d_scores.empty()) return;
    const OffsetBounds bounds = offset_bounds(positions_);
    const bool dense = worth_a_table(bounds, positions_);
    std::vector<T> sums(dense ? static_cast<std::size_t>(bounds.count()) : 0, T{});
    for (Index i = 0; i < d_scores.rows; ++i) {
      const Index query = positions_.queries[static_cast<std::size_t>(i)];
      for (Index j = 0; j < d_scores.columns; ++j) {
        const Index offset = positions_.keys[static_cast<std::size_t>(j)] - query;
        if (dense) {
          sums[static_cast<std::size_t>(offset - bounds.least)] += d_scores.at(i, j);
        } else {
          slope_(head, offset, d_scores.at(i, j));
        }
      }
    }
    for (std::size_t k = 0; k < sums.size(); ++k)
      slope_(head, bounds.least + static_cast<Index>(k), sums[k]);
  }

 private:
  std::unique_ptr<ScoreBias<T>> bias_;
  PositionIds positions_;
  Slope slope_;
};

}  // namespace masque::nn
