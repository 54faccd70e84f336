// The attention of one query, as a text that is written token by token has it: keys and values are
// read once, where they are. The evaluations of attention.hpp pack them first, which pays for many
// queries.
#pragma once

#include "nn/attention/attention.hpp"

namespace masque::nn {

/// Whether row_attention() can evaluate `problem`: one query that sees every key, softmax without
/// temperature and position terms, operands that are not rounded, and no `log_divisors` and
/// `scores` to fill. The caller sees to it that nobody wants the weights.
template <class T>
bool fits_row_attention(const AttentionProblem<T>& problem);

/// Sets `context` (1, heads · value size) to the attention of such a `problem`, the same as that of
/// the evaluations but for rounding. T is float or double. Parallel over key heads, serial inside a
/// parallel region; the bits depend on neither.
template <class T>
void row_attention(const AttentionProblem<T>& problem, MatrixView<T> context);

}  // namespace masque::nn
