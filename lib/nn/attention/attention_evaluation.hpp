// How attention is evaluated: as defined (dense), or by tiles of queries over the visible key
// blocks of the mask (block, long).
#pragma once

#include <span>
#include <string_view>
#include <type_traits>

#include "nn/attention/attention.hpp"

namespace masque::nn {

/// A way to evaluate attention: a row of a table. All agree but for rounding.
struct AttentionEvaluation {
  std::string_view name;    ///< "dense", "block", "long"
  std::string_view cost;    ///< memory and products: of VariantInfo
  std::string_view source;  ///< author, year, identifier
  /// Number of key blocks (of 64) whose scores a tile of queries holds at once. A row's largest
  /// score, sums and context are carried from step to step. 0: every pair, as defined, which the
  /// others are compared with.
  Index step = 0;
};

/// All evaluations, sorted by name.
std::span<const AttentionEvaluation> attention_evaluations();
/// The evaluation called `name`; nullptr if there is none.
const AttentionEvaluation* find_attention_evaluation(std::string_view name);
/// The evaluation that models use: `block` up to 1024 `keys`, else `long`. It depends on the number
/// of keys alone, so that a row has the same bits whatever other queries are evaluated with it.
const AttentionEvaluation& choose_evaluation(Index keys);

/// Sets `context` (T, heads · value size) to the attention of `problem` by `evaluation`; T is float
/// or double. A query that sees no key gets 0. `visit` may be empty; with it the weights of each
/// head are computed as a whole, whatever the evaluation. Parallel over heads or blocks of queries,
/// serial inside a parallel region. The bits of a row do not depend on the other rows, nor on
/// threads; they depend on the step, by rounding.
/// Memory: packed copies of keys and values of one head per thread and a few tiles; with `visit`
/// the weights (T, S) of a head per thread.
template <class T>
void evaluate_attention(const AttentionEvaluation& evaluation, const AttentionProblem<T>& problem,
                        MatrixView<T> context,
                        const std::type_identity_t<WeightsVisitor<T>>& visit = {});

}  // namespace masque::nn
