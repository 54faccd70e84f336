// Products with weights that change with every step of training.
//
// T is float, double or std::complex<double>; only float is fast. An element of every product is
// a sum of chains, one a block of the inner index, in order: the same bits for any number of rows
// and threads.
#pragma once

#include <memory>
#include <span>

#include "kernel/number/precision.hpp"
#include "tensor/matrix.hpp"

namespace masque::kernel {

/// Which products weights are packed for: forward(), backward(), or both.
enum class Packed { kBoth, kForward, kBackward };

/// A weight matrix (out, in), packed for y = x Wᵀ + b and for d_x = d_y W. Movable. Its const
/// members may run on several threads at once; scratch memory is kept per thread.
template <class T>
class TrainedLinear {
 public:
  /// No weights; inputs() and outputs() are 0.
  TrainedLinear();
  ~TrainedLinear();
  /// Takes the weights of the other, which may then only be destroyed or assigned to.
  TrainedLinear(TrainedLinear&&) noexcept;
  /// Takes the weights of the other, which may then only be destroyed or assigned to.
  TrainedLinear& operator=(TrainedLinear&&) noexcept;

  /// Packs `weights`, matrices with the same `in`, stacked by rows; at least one. They are read
  /// once, not kept. Packing again allocates only where shapes grow. `precision` is kF32 or kBf16
  /// for T = float, else kF64. `packed` says what may be called afterwards; the memory of each
  /// direction is separate. O(out · in), on all threads.
  void pack(std::span<const MatrixView<const T>> weights, Precision precision,
            Packed packed = Packed::kBoth);

  Index inputs() const;   ///< columns of the weights
  Index outputs() const;  ///< rows of the stacked weights

  /// `y` (rows, out) = `x` (rows, in) Wᵀ + `bias` (out, or empty). x and y must not
  /// overlap. On all threads.
  void forward(MatrixView<const T> x, std::span<const T> bias, MatrixView<T> y) const;

  /// `d_x` (rows, in) = `d_y` (rows, out) W, or += with `add`. On all threads.
  void backward(MatrixView<const T> d_y, bool add, MatrixView<T> d_x) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// `d_weight` (out, in) += d_yᵀ x, and `d_bias` += column sums of `d_y` (in order of the
/// rows) unless it is empty. `x` (rows, in), d_y (rows, out). `precision` is kF32 or kBf16
/// for T = float, else kF64; kBf16 rounds the operands of the product. Without data in
/// d_weight only the bias is computed.
template <class T>
void add_weight_gradient(MatrixView<const T> x, MatrixView<const T> d_y, Precision precision,
                         MatrixView<T> d_weight, std::span<T> d_bias);

// How fast this machine multiplies matrices now: the measure of a training run.

/// Operations a second (two for each multiply-add) of a TrainedLinear product in `precision`,
/// kF32 or kBf16, of matrices of 1,024 by 1,024, on the threads in use: the best one of a tenth
/// of a second. Takes that long.
double measure_product(Precision precision);

}  // namespace masque::kernel
