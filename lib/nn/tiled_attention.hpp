// Attention by tiles of queries that walk the visible key blocks of a mask: what `block` and `long`
// share. They differ in how many keys a step takes.
#pragma once

#include "nn/attention.hpp"

namespace masque::nn {

/// Sets `context` to the attention of `problem`, as
/// AttentionEvaluation::forward; `visit` may be empty.
///
/// `step` is the number of key blocks (of 64) whose scores a tile holds at once. A row's largest
/// score, sums and context are carried from step to step. Results depend on it, by rounding; they
/// do not depend on the other queries, nor on threads. With `visit` one step takes all.
///
/// Memory: packed copies of keys and values of one head per thread; the rest is a few tiles.
template <class T>
void attention_by_tiles(const AttentionProblem<T>& problem, MatrixView<T> context,
                        const WeightsVisitor<T>& visit, Index step);

}  // namespace masque::nn
