// Layer norm and RMS norm, alone and after a residual.
#pragma once

#include <span>

#include "tensor/matrix.hpp"

namespace masque::kernel {

/// The norm of a row x of n elements.
enum class Norm {
  kLayer,  ///< (x − mean) / √(variance + ε). Ba 2016, arXiv:1607.06450
  kRms,    ///< x / √(mean(x²) + ε). Zhang 2019, arXiv:1910.07467
};

/// `y` = norm(x) ⊙ `weight` + `bias`, row by row; empty weight means 1, empty bias 0; else they
/// have as many elements as `x` has columns. `norm` chooses the formula, `epsilon` is its ε. y may
/// be x. Sums run over fixed lanes that are added in order: the same bits on every processor.
template <class T>
void norm_forward(Norm norm, MatrixView<const T> x, std::span<const T> weight,
                  std::span<const T> bias, double epsilon, MatrixView<T> y);

/// `y` = norm(x + residual) ⊙ `weight` + `bias`, with `norm`, `epsilon` and empty spans as in
/// norm_forward. y may be `x` or `residual`. x + residual is kept in `sum` if it has data: it has
/// the shape of x, and may be x or residual.
template <class T>
void residual_norm_forward(Norm norm, MatrixView<const T> x, MatrixView<const T> residual,
                           std::span<const T> weight, std::span<const T> bias, double epsilon,
                           MatrixView<T> sum, MatrixView<T> y);

/// The gradient of norm_forward: from `x`, the input of the forward pass, and `d_y`, the gradient
/// by y, adds to `d_x`, `d_weight` and `d_bias` (the latter two may be empty). `norm`, `weight` and
/// `epsilon` are those of the forward pass. Gradients of weight and bias are sums over blocks of 32
/// rows, added in order. Scratch memory is kept by the calling thread.
template <class T>
void norm_backward(Norm norm, MatrixView<const T> x, std::span<const T> weight, double epsilon,
                   MatrixView<const T> d_y, MatrixView<T> d_x, std::span<T> d_weight,
                   std::span<T> d_bias);

/// `x` += `y`, element by element; one shape.
template <class T>
void add_to(MatrixView<const T> y, MatrixView<T> x);
/// `x` += `scale` · `y`, element by element; one shape.
template <class T>
void add_scaled(double scale, MatrixView<const T> y, MatrixView<T> x);

/// `y` ← `x`; one shape.
template <class T>
void copy_rows(MatrixView<const T> x, MatrixView<T> y);

}  // namespace masque::kernel
