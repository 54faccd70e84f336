// Products with weights that change with every step of training.
//
// T is float, double or std::complex<double>; only float is fast. An element of every product is
// a sum of chains, one a block of the inner index, in order: the same bits for any number of rows
// and threads.
#pragma once

#include <memory>
#include <span>

#include "kernel/precision.hpp"
#include "tensor/matrix.hpp"

namespace masque::kernel {

/// Which products weights are packed for.
enum class Packed { kBoth, kForward, kBackward };

/// A weight matrix (out, in), packed for y = x Wᵀ + b and for d_x = d_y W. Movable. Its const
/// members may run on several threads at once; scratch memory is kept per thread.
template <class T>
class TrainedLinear {
 public:
  TrainedLinear();
  ~TrainedLinear();
  TrainedLinear(TrainedLinear&&) noexcept;
  TrainedLinear& operator=(TrainedLinear&&) noexcept;

  /// weights  matrices with the same `in`, stacked by rows; read once, not kept. Packing again
  ///          allocates only where shapes grow.
  /// precision  for T = float kF32 or kBf16, else kF64.
  /// packed   what may be called afterwards; its memory is kept apart for each direction.
  /// O(out · in), on all threads.
  void pack(std::span<const MatrixView<const T>> weights, Precision precision,
            Packed packed = Packed::kBoth);

  Index inputs() const;
  Index outputs() const;

  /// y (rows, out) = x (rows, in) Wᵀ + bias (out, or empty). x and y must not overlap.
  void forward(MatrixView<const T> x, std::span<const T> bias, MatrixView<T> y) const;

  /// d_x (rows, in) = d_y (rows, out) W, or += with `add`.
  void backward(MatrixView<const T> d_y, bool add, MatrixView<T> d_x) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// d_weight (out, in) += d_yᵀ x, and d_bias += column sums of d_y (in order of the rows) unless it
/// is empty. x (rows, in), d_y (rows, out). kBf16 rounds the operands of the product. d_weight
/// without data: the bias alone.
template <class T>
void add_weight_gradient(MatrixView<const T> x, MatrixView<const T> d_y, Precision precision,
                         MatrixView<T> d_weight, std::span<T> d_bias);

}  // namespace masque::kernel
