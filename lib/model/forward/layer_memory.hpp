// What one layer computes of a stream, between its input and its output.
#pragma once

#include "tensor/matrix.hpp"

namespace masque::model {

/// Inference has one for all layers, which each fills anew; training one a layer and stream, which
/// its backward pass reads. Matrices keep their memory from chunk to chunk. s, u and t are those of
/// layer_forward.hpp.
template <class T>
struct LayerMemory {
  Matrix<T> normed, source_normed;        ///< pre-norm: what the projections read
                                          ///< (inference: then the feed-forward layer)
  Matrix<T> projected, source_projected;  ///< queries (keys, values) as attention sees them
  Matrix<T> context;                      ///< what the output projection reads
  Matrix<T> sum;       ///< what attention gives; s, its sum with the residual, where that is kept
  Matrix<T> middle;    ///< u: what the feed-forward layer reads
  Matrix<T> wide;      ///< its first product; GAU: all that the input gives, after the activation
  Matrix<T> active;    ///< what its second product reads
  Matrix<T> last_sum;  ///< t: the residual after the feed-forward layer
  /// kSandwich, kReZero, kNormFormer: what the parts give, before its norm or its number.
  Matrix<T> attention_branch, feed_forward_branch;
  Matrix<T> scaled_context;     ///< kNormFormer: context, each head times its number
  Matrix<T> gate, source_gate;  ///< GAU: before the activation
  Matrix<T> queries, keys;      ///< GAU: scaled
  /// XLNet, DeBERTa: projected rows of distances, which queries meet; and those that keys meet.
  Matrix<T> distance_keys, distance_queries;
  Matrix<T> convolved, convolution_sum;  ///< DeBERTa: before the activation, before the norm

  /// Calls visit(matrix) for all.
  template <class F>
  void for_each(const F& visit) {
    for (Matrix<T>* matrix :
         {&normed,         &source_normed, &projected,        &source_projected,
          &context,        &sum,           &middle,           &wide,
          &active,         &last_sum,      &attention_branch, &feed_forward_branch,
          &scaled_context, &gate,          &source_gate,      &queries,
          &keys,           &distance_keys, &distance_queries, &convolved,
          &convolution_sum})
      visit(*matrix);
  }
};

/// The matrix with this shape; its content is undefined.
template <class T>
MatrixView<T> resized(Matrix<T>& matrix, Index rows, Index columns) {
  matrix.resize(rows, columns);
  return matrix.view();
}

}  // namespace masque::model
