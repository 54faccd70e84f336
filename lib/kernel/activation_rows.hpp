// Activations of one row: the reference for any number, fast loops for float.
#pragma once

#include "kernel/activation_reference.hpp"

namespace masque::kernel {

/// What the backward pass of a gated unit reads and adds to: n elements each, d_gate and d_up apart
/// from all others. Borrowed.
template <class T>
struct GateRow {
  const T* gate;  ///< input of the activation
  const T* up;    ///< the other factor
  const T* d_y;   ///< gradient by y
  T* d_gate;      ///< is added to
  T* d_up;        ///< is added to
};

/// `y` = `f`(x) for the `n` elements of `x`. y may be x. For float by the fast
/// functions of elementary.hpp.
template <class T>
void activate_row(Activation f, const T* x, T* y, Index n) {
  for (Index i = 0; i < n; ++i) y[i] = reference::activation_value(f, x[i]);
}
void activate_row(Activation f, const float* x, float* y, Index n);

/// `d_x` += f′(x) ⊙ `d_y`, `n` elements each; `f` is the activation, `x` the input of the forward
/// pass. d_x must not overlap the others.
template <class T>
void add_slope_row(Activation f, const T* x, const T* d_y, T* d_x, Index n) {
  for (Index i = 0; i < n; ++i) d_x[i] += reference::activation_slope(f, x[i]) * d_y[i];
}
void add_slope_row(Activation f, const float* x, const float* d_y, float* d_x, Index n);

/// `d` ⊙= f′(x), `n` elements each; `f` is the activation, `x` the input of the forward pass. d
/// must not overlap x.
template <class T>
void multiply_slope_row(Activation f, const T* x, T* d, Index n) {
  for (Index i = 0; i < n; ++i) d[i] *= reference::activation_slope(f, x[i]);
}
void multiply_slope_row(Activation f, const float* x, float* d, Index n);

/// Gradients of a gated unit with activation `f` for the `n` elements of `row`: d_up += f(gate) ⊙
/// d_y and d_gate += f′(gate) ⊙ up ⊙ d_y.
template <class T>
void add_gate_row(Activation f, const GateRow<T>& row, Index n) {
  for (Index i = 0; i < n; ++i) {
    row.d_up[i] += reference::activation_value(f, row.gate[i]) * row.d_y[i];
    row.d_gate[i] += reference::activation_slope(f, row.gate[i]) * row.up[i] * row.d_y[i];
  }
}
void add_gate_row(Activation f, const GateRow<float>& row, Index n);

/// `y` ⊙= `x`, `n` elements each. They are the same or do not overlap.
template <class T>
void multiply_row(const T* x, T* y, Index n) {
  for (Index i = 0; i < n; ++i) y[i] *= x[i];
}
void multiply_row(const float* x, float* y, Index n);

/// `y` = `f`(x + bias) for the `n` elements of `x` and `bias`; nullptr means no bias. y may be x.
void finish_row(Activation f, const float* x, const float* bias, float* y, Index n);

}  // namespace masque::kernel
