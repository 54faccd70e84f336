// What the attention of one sequence of a layer reads, for inference and training.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "model/chunk.hpp"
#include "model/forward/forward.hpp"
#include "model/forward/position_terms.hpp"
#include "model/forward/stream.hpp"
#include "nn/attention/materialized_attention.hpp"

namespace masque::model {

/// The attention of one sequence in layer `layer` of `design`, of the sizes `heads`: `query`
/// (queries, heads · head size), `key` (keys, key heads · head size) and `value` (keys, columns of
/// all heads of values), which are borrowed. Mask, normalizer, precision and position terms are the
/// caller's.
template <class T>
nn::AttentionProblem<T> attention_problem(const Design& design, Index layer, const HeadSizes& heads,
                                          MatrixView<const T> query, MatrixView<const T> key,
                                          MatrixView<const T> value) {
  nn::AttentionProblem<T> problem;
  problem.query = query;
  problem.key = key;
  problem.value = value;
  problem.num_heads = heads.heads;
  problem.num_key_value_heads = heads.key_heads;
  problem.scale =
      design.attention_scale * design.layers[static_cast<std::size_t>(layer)].attention_scale;
  problem.cap = design.score_cap;
  return problem;
}

/// The same in layer `layer` of `design`, of the sizes `heads`, of sequence `sequence` of `stream`
/// over that of `content`: its rows of `projected`.
template <class T>
nn::AttentionProblem<T> attention_problem(const Design& design, Index layer, const HeadSizes& heads,
                                          const StreamRows& stream, const StreamRows& content,
                                          Index sequence, const Projected<T>& projected) {
  const auto part = [&](const StreamRows& rows, MatrixView<T> x) {
    return x.middle_rows(rows.begin(sequence), rows.count(sequence));
  };
  return attention_problem<T>(design, layer, heads, part(stream, projected.query),
                              part(content, projected.key), part(content, projected.value));
}

/// Sets in `in` the positions and segments of sequence `sequence`: those of its queries in `stream`
/// and of its keys in `content`, which are borrowed. `learned`: the model has a table of positions;
/// then positions are counted in the sequence, and `counted` keeps what they point to.
template <class T>
void set_rows(const StreamRows& stream, const StreamRows& content, Index sequence, bool learned,
              std::vector<Index>& counted, PositionInputs<T>& in) {
  if (learned) {
    std::optional<std::span<const Index>> rows;
    if (stream.kind != StreamKind::kContent)
      rows = of_sequence(stream.rows, stream.begins, sequence);
    in.positions =
        counted_positions(content.begin(sequence), content.begin(sequence + 1), rows, counted);
  } else {
    in.positions = {of_sequence(stream.positions, stream.begins, sequence),
                    of_sequence(content.positions, content.begins, sequence)};
  }
  in.query_segments = of_sequence(stream.segments, stream.begins, sequence);
  in.key_segments = of_sequence(content.segments, content.begins, sequence);
}

/// `problem` in a layer of `design`, in float where it is bf16, with what its variants add: talking
/// heads, Λ `talking_before` and `talking_after` (without data: none), scores of the layer before,
/// factors of weights and terms of values. `terms` may be null; `previous`: the scores of each head
/// before, or none. All are borrowed.
template <class T>
nn::MaterializedAttention<T> materialized_attention(const Design& design,
                                                    const nn::AttentionProblem<T>& problem,
                                                    MatrixView<const T> talking_before,
                                                    MatrixView<const T> talking_after,
                                                    std::span<const MatrixView<const T>> previous,
                                                    nn::PositionTerms<T>* terms) {
  nn::MaterializedAttention<T> attention;
  attention.problem = problem;
  attention.problem.bf16 = false;
  attention.talking_before = talking_before;
  attention.talking_after = talking_after;
  attention.num_value_heads = design.variants.value_heads;
  attention.previous = previous;
  attention.largest = design.variants.largest_keys;
  attention.pass_own_scores = design.variants.previous_scores == PreviousScores::kOneLayer;
  if (terms != nullptr) {
    attention.weight_terms = terms->weight_terms();
    attention.value_terms = terms->value_terms();
  }
  return attention;
}

}  // namespace masque::model
