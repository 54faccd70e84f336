// Products with weights: y = act(x Wᵀ + b).
//
// T is float, double or std::complex<double>. Only `Linear<float>` is fast: it keeps the weights
// packed, for oneDNN or for our own product (`StripWeights::preferred`). An element of y is one sum
// over the inputs (oneDNN) or a sum of chains of at most 384 of them, in order (ours). It does not
// depend on the other rows of x, on the batch or on the number of threads.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "kernel/activation.hpp"
#include "kernel/precision.hpp"
#include "tensor/matrix.hpp"

namespace masque::kernel {

/// A weight matrix, prepared once. Immutable and thread-safe; movable.
template <class T>
class Linear {
 public:
  Linear() = default;
  /// weights  each (out, in), copied; with the same `in`, and stacked as if they were one.
  /// bias     out elements, or empty. For T = double, `precision` must be kF64.
  Linear(std::span<const MatrixView<const T>> weights, std::span<const T> bias, Precision precision,
         Activation activation = Activation::kNone);

  Index inputs() const;
  Index outputs() const;
  bool empty() const { return state_ == nullptr; }

  /// y (rows, out) = act(x (rows, in) Wᵀ + b). x and y must not overlap. Scratch memory is kept per
  /// thread. Inside a parallel region it runs on the calling thread, else on all.
  void forward(MatrixView<const T> x, MatrixView<T> y) const;

  /// Columns first … first + y.columns − 1 of the same y, bit for bit. `first` is a multiple of
  /// kColumnBlock, and so is y.columns unless it ends at the last output.
  void forward_columns(Index first, MatrixView<const T> x, MatrixView<T> y) const;
  static constexpr Index kColumnBlock = 128;

 private:
  struct State;
  std::shared_ptr<const State> state_;
};

/// y = x Wᵀ, plain matrices of any strides; weight (out, in). For products of activations, and for
/// weights that change.
template <class T>
void matmul_forward(MatrixView<const T> x, MatrixView<const T> weight, MatrixView<T> y);

/// d_x += d_y W and d_weight += d_yᵀ x; a view without data is left out.
template <class T>
void matmul_backward(MatrixView<const T> x, MatrixView<const T> weight, MatrixView<const T> d_y,
                     MatrixView<T> d_x, MatrixView<T> d_weight);

/// y = x W: weight (in, out).
template <class T>
void matmul_plain(MatrixView<const T> x, MatrixView<const T> weight, MatrixView<T> y);

}  // namespace masque::kernel
