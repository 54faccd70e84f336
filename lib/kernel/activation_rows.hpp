// Activations of one row: the reference for any number, fast loops for float.
#pragma once

#include "kernel/activation_reference.hpp"

namespace masque::kernel {

/// What the backward pass of a gated unit reads and adds to: n elements each, d_gate and d_up apart
/// from all others.
template <class T>
struct GateRow {
  const T* gate;
  const T* up;
  const T* d_y;
  T* d_gate;
  T* d_up;
};

/// y = f(x), n elements. y may be x.
template <class T>
void activate_row(Activation f, const T* x, T* y, Index n) {
  for (Index i = 0; i < n; ++i) y[i] = reference::activation_value(f, x[i]);
}
void activate_row(Activation f, const float* x, float* y, Index n);

/// d_x += f′(x) ⊙ d_y, n elements; x is the input of the forward pass. d_x must not overlap the
/// others.
template <class T>
void add_slope_row(Activation f, const T* x, const T* d_y, T* d_x, Index n) {
  for (Index i = 0; i < n; ++i) d_x[i] += reference::activation_slope(f, x[i]) * d_y[i];
}
void add_slope_row(Activation f, const float* x, const float* d_y, float* d_x, Index n);

/// d_up += f(g) ⊙ d_y and d_gate += f′(g) ⊙ up ⊙ d_y
template <class T>
void add_gate_row(Activation f, const GateRow<T>& row, Index n) {
  for (Index i = 0; i < n; ++i) {
    row.d_up[i] += reference::activation_value(f, row.gate[i]) * row.d_y[i];
    row.d_gate[i] += reference::activation_slope(f, row.gate[i]) * row.up[i] * row.d_y[i];
  }
}
void add_gate_row(Activation f, const GateRow<float>& row, Index n);

/// y ⊙= x, n elements. They are the same or do not overlap.
template <class T>
void multiply_row(const T* x, T* y, Index n) {
  for (Index i = 0; i < n; ++i) y[i] *= x[i];
}
void multiply_row(const float* x, float* y, Index n);

/// y = f(x + bias), n elements; without a bias nullptr. y may be x.
void finish_row(Activation f, const float* x, const float* bias, float* y, Index n);

}  // namespace masque::kernel
