// What one layer computes of a stream, between its input and its output.
#pragma once

#include <vector>

#include "tensor/matrix.hpp"

namespace masque::model {

/// Memory of a mixture of experts (experts_forward.hpp). A pair is a row and an expert that it goes
/// through; pairs are sorted by expert, then by row.
template <class T>
struct ExpertMemory {
  std::vector<Index> begins;  ///< one an expert: its first pair; then the number of pairs
  std::vector<Index> rows;    ///< of each pair
  Matrix<T> probabilities;    ///< (rows, experts)
  Matrix<T> weights;          ///< (1, pairs): what the expert's result is multiplied by
  Matrix<T> inputs,           ///< (pairs, hidden size)
      wide,                   ///< (pairs, 2 · intermediate size): gate, then up
      active,                 ///< (pairs, intermediate size)
      outputs;                ///< (pairs, hidden size), not yet multiplied
  Matrix<T> shared_wide,      ///< (rows, …) of the shared expert
      shared_active,          ///< in the same way
      shared_output,          ///< in the same way
      shared_weight;          ///< (rows, 1): after the sigmoid

  /// Calls `visit`(matrix) for all.
  template <class F>
  void for_each(const F& visit) {
    for (Matrix<T>* matrix : {&probabilities, &weights, &inputs, &wide, &active, &outputs,
                              &shared_wide, &shared_active, &shared_output, &shared_weight})
      visit(*matrix);
  }
};

/// Memory for the results of a layer. Inference has one for all layers, which each fills anew;
/// training one a layer and stream, which its backward pass reads. Matrices keep their memory from
/// chunk to chunk. s, u and t are those of layer_forward.hpp.
template <class T>
struct LayerMemory {
  Matrix<T> normed,      ///< pre-norm: what projections read (inference: the feed-forward, too)
      source_normed;     ///< the same of the source
  Matrix<T> projected,   ///< queries (in training keys and values, if of the same rows)
      source_projected;  ///< keys and values of the source; GAU: all that the input gives of it
  /// Training: queries after Design::clip_qkv, before norms and rotation; without these two they
  /// are not kept.
  Matrix<T> raw_query;
  Matrix<T> raw_key;   ///< the same of keys
  Matrix<T> context;   ///< what the output projection reads
  Matrix<T> sum;       ///< what attention gives; s, its sum with the residual, where that is kept
  Matrix<T> middle;    ///< u: what the feed-forward layer reads
  Matrix<T> wide;      ///< its first product; GAU: all that the input gives, after the activation
  Matrix<T> active;    ///< what its second product reads
  Matrix<T> last_sum;  ///< t: the residual after the feed-forward layer
  /// norms_attention_output(), kReZero: what attention gives, before its norm or its number.
  Matrix<T> attention_branch,
      /// norms_feed_forward_output(), kReZero: what the feed-forward layer gives, in the same way.
      feed_forward_branch;
  Matrix<T> scaled_context;  ///< kNormFormer: context, each head times its number
  Matrix<T> gate,            ///< GAU: what the input gives, before the activation
      source_gate;           ///< GAU: the same of the source
  Matrix<T> queries,         ///< GAU: scaled
      keys;                  ///< GAU: scaled
  Matrix<T> distance_keys,   ///< XLNet, DeBERTa: projected rows of distances, which queries meet
      distance_queries;      ///< DeBERTa: those that keys meet
  Matrix<T> convolved,       ///< DeBERTa: before the activation
      convolution_sum;       ///< DeBERTa: before the norm
  // SourceDesign, where a pass keeps something:
  Matrix<T> source_input,   ///< what the queries of the source are made of
      source_query,         ///< these queries
      source_key_value,     ///< keys and values of the source
      source_context,       ///< what the output projection reads
      source_sum;           ///< its sum with the residual, before a norm of that
  ExpertMemory<T> experts;  ///< LayerDesign::experts

  /// Calls `visit`(matrix) for all.
  template <class F>
  void for_each(const F& visit) {
    experts.for_each(visit);
    for (Matrix<T>* matrix : {&normed,
                              &source_normed,
                              &projected,
                              &source_projected,
                              &raw_query,
                              &raw_key,
                              &context,
                              &sum,
                              &middle,
                              &wide,
                              &active,
                              &last_sum,
                              &attention_branch,
                              &feed_forward_branch,
                              &scaled_context,
                              &gate,
                              &source_gate,
                              &queries,
                              &keys,
                              &distance_keys,
                              &distance_queries,
                              &convolved,
                              &convolution_sum,
                              &source_input,
                              &source_query,
                              &source_key_value,
                              &source_context,
                              &source_sum})
      visit(*matrix);
  }
};

/// A view of `matrix`, which becomes (`rows`, `columns`); its content is undefined. Memory grows,
/// but does not shrink.
template <class T>
MatrixView<T> resized(Matrix<T>& matrix, Index rows, Index columns) {
  matrix.resize(rows, columns);
  return matrix.view();
}

}  // namespace masque::model
