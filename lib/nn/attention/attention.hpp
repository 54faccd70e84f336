// Attention of one sequence: which pairs (a mask), what a score is (queries, keys, position terms),
// how scores become weights (a normalizer), and how it is evaluated (dense, block, long).
//
// T is float (fast), double or std::complex<double> (reference). In shapes T and S are the numbers
// of queries and keys.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "mask/block_map.hpp"
#include "nn/normalizer.hpp"
#include "tensor/matrix.hpp"

namespace masque::nn {

/// Position terms of the scores of one head of one sequence. Lives while that head is evaluated.
template <class T>
class HeadBias {
 public:
  virtual ~HeadBias() = default;
  /// scores(i, j) += b(queries.begin + i, keys.begin + j) for the pairs of `queries` and `keys`,
  /// already multiplied by whatever scale the scheme has; `scores` is (queries.size(),
  /// keys.size()). Thread-safe.
  virtual void add(mask::Range queries, mask::Range keys, MatrixView<T> scores) const = 0;
};

/// Position terms of one sequence.
template <class T>
class ScoreBias {
 public:
  virtual ~ScoreBias() = default;
  /// The terms of `head`; `query` (T, head size) and `key` (S, head size) are its columns, which
  /// must outlive the result, as must this object. Called from several threads for different heads.
  virtual std::unique_ptr<HeadBias<T>> head(Index head, MatrixView<const T> query,
                                            MatrixView<const T> key) const = 0;
};

/// The attention of one sequence, all heads. Views and pointers are borrowed.
template <class T>
struct AttentionProblem {
  MatrixView<const T> query;      ///< (T, heads · head size): head h in columns h · head size …
  MatrixView<const T> key;        ///< (S, key heads · head size)
  MatrixView<const T> value;      ///< (S, key heads · value size)
  Index num_heads = 1;            ///< heads of the queries
  Index num_key_value_heads = 1;  ///< head h reads key head h · key heads / heads
  double scale = 1;               ///< scale of q·k, before position terms
  /// c of a soft cap: a score s with its position terms becomes c · tanh(s / c), before the
  /// normalizer; 0: none.
  double cap = 0;
  const AttentionNormalizer* normalizer = nullptr;  ///< required; must outlive the call
  const ScoreBias<T>* bias = nullptr;               ///< position terms; nullptr: none
  /// Of each head the score of a key without a value, neither scaled nor capped, which every query
  /// sees that sees any key; empty: none. For normalizers that divide exponentials by their sum.
  std::span<const T> sinks = {};
  /// (T × S), one for all heads or one a head; nullptr: everything is visible.
  const mask::BlockMap* blocks = nullptr;
  /// Operands of both products (queries and keys, weights and values) are rounded to bfloat16,
  /// sums are not. A weight may be rounded before or after its division; position terms and what a
  /// visitor sees stay as they are. Not for complex numbers.
  bool bf16 = false;
  /// Filled for a visitor, before its call for a head, where they are not empty; `block`, `long`
  /// and materialized attention only. Numerators are those of the normalizer, for exponentials of
  /// score − shift; rows without any have −∞.
  MatrixView<T> log_divisors;  ///< (heads, T): shift of the row plus log of its divisor
  MatrixView<T> scores;        ///< (heads · T, S), times the temperature; −∞ where hidden
};

/// The score of the sink of `head` of `problem`; nothing without sinks.
template <class T>
std::optional<T> sink_of(const AttentionProblem<T>& problem, Index head) {
  if (problem.sinks.empty()) return std::nullopt;
  return problem.sinks[static_cast<std::size_t>(head)];
}

/// Called with the weights (T, S) of each head, from any thread; the view ends with the call.
template <class T>
using WeightsVisitor = std::function<void(Index head, MatrixView<const T> weights)>;

/// Checks (MASQUE_CHECK) that the shapes of `problem` and of its `context` fit each other:
/// whatever evaluates attention calls it.
template <class T>
void check_problem(const AttentionProblem<T>& problem, MatrixView<T> context);

}  // namespace masque::nn
