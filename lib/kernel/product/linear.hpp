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
#include "kernel/number/precision.hpp"
#include "tensor/matrix.hpp"
#include "tensor/row_source.hpp"

namespace masque::kernel {

/// Where the weights of a product are kept.
enum class WeightStorage {
  kPacked,    ///< in memory, for the product that is faster for them
  kStrips,    ///< in memory, for our own product
  kStreamed,  ///< in their source: read again for each product, ours
};

/// A weight matrix, prepared once. Immutable and thread-safe; movable.
template <class T>
class Linear {
 public:
  Linear() = default;
  /// Copies and packs `weights`, each (out, in) with the same `in`, stacked by rows as if
  /// they were one; at least one. `bias` has out elements of the stack, or is empty.
  /// Products are computed in `precision`: kF32 or kBf16 for T = float, else kF64.
  /// `activation` is the function of forward().
  Linear(std::span<const MatrixView<const T>> weights, std::span<const T> bias, Precision precision,
         Activation activation = Activation::kNone);
  /// The same `bias`, `precision` and `activation` with `weights` that are read row by row, and
  /// kept as `storage` says; the memory of those that are packed is all that they take, two bytes
  /// or one for a number where that has the same bits (StripWeights::narrow). T is float. Throws
  /// what the source throws.
  Linear(std::shared_ptr<const RowSource> weights, std::span<const T> bias, Precision precision,
         Activation activation = Activation::kNone, WeightStorage storage = WeightStorage::kPacked);

  Index inputs() const;                             ///< columns of the weights; 0 if empty()
  Index outputs() const;                            ///< rows of the stacked weights; 0 if empty()
  bool empty() const { return state_ == nullptr; }  ///< true without weights

  /// `y` (rows, out) = act(x Wᵀ + b) for `x` (rows, in). x and y must not overlap. Scratch memory
  /// is kept per thread. Inside a parallel region it runs on the calling thread, else on all. Of
  /// kStreamed it throws what the source throws.
  void forward(MatrixView<const T> x, MatrixView<T> y) const;

  /// Columns `first` … first + y.columns − 1 of forward()'s result for `x`, to `y`, bit for bit.
  /// `first` is a multiple of kColumnBlock, and so is y.columns unless it ends at the last output.
  void forward_columns(Index first, MatrixView<const T> x, MatrixView<T> y) const;
  static constexpr Index kColumnBlock = 128;  ///< outputs that are computed together

 private:
  struct State;
  void adopt(std::shared_ptr<State> state, std::span<const T> bias, Activation activation);
  std::shared_ptr<const State> state_;
};

/// `y` (rows, out) = x Wᵀ for `x` (rows, in) and `weight` (out, in), plain matrices of any strides.
/// For products of activations, and for weights that change. y must not overlap the others.
template <class T>
void matmul_forward(MatrixView<const T> x, MatrixView<const T> weight, MatrixView<T> y);

/// Gradients of matmul_forward from `d_y` (rows, out): `d_x` += d_y W and `d_weight` += d_yᵀ x,
/// with the `x` and `weight` of the forward pass. A view without data is left out.
template <class T>
void matmul_backward(MatrixView<const T> x, MatrixView<const T> weight, MatrixView<const T> d_y,
                     MatrixView<T> d_x, MatrixView<T> d_weight);

/// `y` (rows, out) = x W for `x` (rows, in) and `weight` (in, out). y must not overlap the others.
template <class T>
void matmul_plain(MatrixView<const T> x, MatrixView<const T> weight, MatrixView<T> y);

}  // namespace masque::kernel
