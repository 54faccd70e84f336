// What several mixers are put together from: products, masked matrices, softmax over visible keys.
#pragma once

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "kernel/activation.hpp"
#include "kernel/norm.hpp"
#include "kernel/parallel.hpp"
#include "kernel/product/linear.hpp"
#include "kernel/softmax/softmax.hpp"
#include "nn/attention/row_mask.hpp"
#include "nn/mixer/mixer.hpp"

namespace masque::nn::mixing {

/// ε of the norms inside mixers.
inline constexpr double kEpsilon = 1e-6;

/// A weight called `name` (`outputs`, `inputs`) that starts so that products keep the size of their
/// input: deviation 1/√inputs.
inline MixerParameter weight_parameter(std::string name, Index outputs, Index inputs) {
  return {std::move(name), outputs, inputs, 0, 1 / std::sqrt(static_cast<double>(inputs))};
}

/// A parameter called `name` (`rows`, `columns`) that starts as `value` everywhere.
inline MixerParameter constant_parameter(std::string name, Index rows, Index columns,
                                         double value) {
  return {std::move(name), rows, columns, value, 0};
}

/// Calls `work`(begin, end) for runs of [0, `rows`) that cost `row_cost` operations a row, in
/// parallel as kernel::parallel_ranges.
template <class Work>
void for_row_ranges(Index rows, Index row_cost, const Work& work) {
  kernel::parallel_ranges(rows, kernel::row_grain(row_cost), work);
}

/// The elements of `x`, a matrix without gaps between rows, as a vector; borrowed.
template <class T>
std::span<T> flat(MatrixView<T> x) {
  MASQUE_CHECK(x.stride == x.columns || x.rows <= 1);
  return {x.data, static_cast<std::size_t>(x.rows * x.columns)};
}

/// The transpose of `x`.
template <class T>
Matrix<T> transposed(MatrixView<const T> x) {
  Matrix<T> out(x.columns, x.rows);
  for (Index i = 0; i < x.rows; ++i) {
    for (Index j = 0; j < x.columns; ++j) out.view().at(j, i) = x.at(i, j);
  }
  return out;
}

/// The columns of `head` in `x` (rows, d), by the heads of `shape`.
template <class T>
MatrixView<T> head_columns(const MixerShape& shape, MatrixView<T> x, Index head) {
  const Index size = shape.hidden_size / shape.num_attention_heads;
  return x.middle_columns(head * size, size);
}

/// The rows of `head` in `x`, a matrix of num_attention_heads equal parts of rows, by `shape`.
template <class T>
MatrixView<T> head_rows(const MixerShape& shape, MatrixView<T> x, Index head) {
  const Index rows = x.rows / shape.num_attention_heads;
  return x.middle_rows(head * rows, rows);
}

/// x Wᵀ for `x` (rows, inputs) and W = `weight` (outputs, inputs).
template <class T>
Matrix<T> project(MatrixView<const T> x, MatrixView<const T> weight) {
  Matrix<T> out(x.rows, weight.rows);
  kernel::matmul_forward<T>(x, weight, out.view());
  return out;
}

/// `a` (n, m) · `b` (m, k).
template <class T>
Matrix<T> product(MatrixView<const T> a, MatrixView<const T> b) {
  Matrix<T> out(a.rows, b.columns);
  kernel::matmul_plain<T>(a, b, out.view());
  return out;
}

/// `to` += `a`ᵀ `b` for a (n, m), b (n, k) and to (m, k).
template <class T>
void add_transposed_product(MatrixView<const T> a, MatrixView<const T> b, MatrixView<T> to) {
  // matmul_backward reads only the shape of the weight when it makes the weight's gradient.
  kernel::matmul_backward<T>(b, to, a, {}, to);
}

/// Every row of `x` += `bias` (as many elements as x has columns).
template <class T>
void add_to_rows(MatrixView<const T> bias, MatrixView<T> x) {
  const auto b = flat(bias);
  for (Index i = 0; i < x.rows; ++i) {
    for (Index j = 0; j < x.columns; ++j) x.at(i, j) += b[static_cast<std::size_t>(j)];
  }
}

/// `bias` += sums over the rows of `x`.
template <class T>
void add_row_sums(MatrixView<const T> x, MatrixView<T> bias) {
  const auto b = flat(bias);
  for (Index i = 0; i < x.rows; ++i) {
    for (Index j = 0; j < x.columns; ++j) b[static_cast<std::size_t>(j)] += x.at(i, j);
  }
}

/// Layer norm of the rows of `x` with ε = kEpsilon; `weight` and `bias` are (1, columns).
template <class T>
Matrix<T> layer_norm(MatrixView<const T> x, MatrixView<const T> weight, MatrixView<const T> bias) {
  Matrix<T> out(x.rows, x.columns);
  kernel::norm_forward<T>(kernel::Norm::kLayer, x, flat(weight), flat(bias), kEpsilon, out.view());
  return out;
}

/// The gradient of layer_norm: from `d_y` adds to `d_x`, `d_weight` and `d_bias`; `x` and `weight`
/// are those of the forward pass.
template <class T>
void layer_norm_backward(MatrixView<const T> x, MatrixView<const T> weight, MatrixView<const T> d_y,
                         MatrixView<T> d_x, MatrixView<T> d_weight, MatrixView<T> d_bias) {
  kernel::norm_backward<T>(kernel::Norm::kLayer, x, flat(weight), kEpsilon, d_y, d_x,
                           flat(d_weight), flat(d_bias));
}

/// `f`(x) of the elements of `x`, as a new matrix.
template <class T>
Matrix<T> activated(kernel::Activation f, MatrixView<const T> x) {
  Matrix<T> out = Matrix<T>::copy(x);
  kernel::activation_forward<T>(f, out.view());
  return out;
}

/// `f`′(x) ⊙ `d_y` as a new matrix; `x` is the input of the forward pass.
template <class T>
Matrix<T> activated_backward(kernel::Activation f, MatrixView<const T> x, MatrixView<const T> d_y) {
  Matrix<T> out = Matrix<T>::zero(x.rows, x.columns);
  kernel::activation_backward<T>(f, x, d_y, out.view());
  return out;
}

/// Sets hidden pairs of `a` (T, T) to 0; nothing is hidden if `blocks` is nullptr.
template <class T>
void hide(const mask::BlockMap* blocks, MatrixView<T> a) {
  if (blocks == nullptr) return;
  for_row_ranges(a.rows, a.columns, [&](Index begin, Index end) {
    RowMask mask(blocks, a.columns);
    for (Index i = begin; i < end; ++i) {
      mask.read(i);
      for (Index j = 0; j < a.columns; ++j) {
        if (!mask.visible(j)) a.at(i, j) = T{};
      }
    }
  });
}

/// The leading (T, T) of `weight`, a static matrix (n, n), with hidden pairs of `problem` 0.
template <class T>
Matrix<T> static_matrix(const MixerProblem<T>& problem, MatrixView<const T> weight) {
  const Index tokens = problem.x.rows;
  Matrix<T> out = Matrix<T>::copy(weight.middle_rows(0, tokens).middle_columns(0, tokens));
  hide(problem.blocks, out.view());
  return out;
}

/// The gradient of static_matrix for `problem`: `d_weight` += `d_a` where visible. d_a is changed.
template <class T>
void static_matrix_backward(const MixerProblem<T>& problem, MatrixView<T> d_a,
                            MatrixView<T> d_weight) {
  hide(problem.blocks, d_a);
  kernel::add_to<T>(d_a, d_weight.middle_rows(0, d_a.rows).middle_columns(0, d_a.columns));
}

/// Turns the rows of `a`, scores (T, T), into weights: softmax over the keys that are visible in
/// `blocks` (nullptr: all), 0 where there is none.
template <class T>
void masked_softmax(const mask::BlockMap* blocks, MatrixView<T> a) {
  std::vector<std::uint64_t> bits;
  if (blocks != nullptr) {
    RowMask mask(blocks, a.columns);
    bits.reserve(static_cast<std::size_t>(a.rows) * mask.words().size());
    for (Index i = 0; i < a.rows; ++i) {
      mask.read(i);
      bits.insert(bits.end(), mask.words().begin(), mask.words().end());
    }
  }
  kernel::softmax_forward<T>(a, bits);
}

/// From `d_weights`, gradients by `weights`, the result of masked_softmax, to those by the scores.
/// Hidden pairs get 0, because their weight is 0.
template <class T>
Matrix<T> softmax_backward(MatrixView<const T> weights, MatrixView<const T> d_weights) {
  Matrix<T> out = Matrix<T>::zero(weights.rows, weights.columns);
  kernel::softmax_backward<T>(weights, d_weights, out.view());
  return out;
}

}  // namespace masque::nn::mixing
