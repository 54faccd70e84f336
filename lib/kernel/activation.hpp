// Element-wise functions between the two products of a feed-forward layer.
//
// T is float (fast path), double or std::complex<double> (reference).
#pragma once

#include <optional>
#include <string_view>

#include "tensor/matrix.hpp"

namespace masque::kernel {

enum class Activation {
  kNone,
  kGelu,      ///< x · Φ(x) by erf. Hendrycks and Gimpel 2016, arXiv:1606.08415
  kGeluTanh,  ///< 0.5 x (1 + tanh(√(2/π) (x + 0.044715 x³)))
  kRelu,
  kSquaredRelu,
  kSwish,  ///< x · σ(x)
  kTanh,
  kSigmoid,
};

/// "gelu", "gelu_tanh", "relu", … and the spellings of config.json (gelu_new, gelu_fast,
/// gelu_pytorch_tanh, silu, swish, gelu_10 is not known).
std::optional<Activation> find_activation(std::string_view name);

/// x ← f(x), in place. Parallel over rows.
template <class T>
void activation_forward(Activation f, MatrixView<T> x);

/// d_x += f′(x) ⊙ d_y, x the input of the forward pass.
template <class T>
void activation_backward(Activation f, MatrixView<const T> x, MatrixView<const T> d_y,
                         MatrixView<T> d_x);

/// y = f(gate) ⊙ up: gated linear units. y may be `gate`. Dauphin 2016, Shazeer 2020.
template <class T>
void gated_forward(Activation f, MatrixView<const T> gate, MatrixView<const T> up, MatrixView<T> y);
template <class T>
void gated_backward(Activation f, MatrixView<const T> gate, MatrixView<const T> up,
                    MatrixView<const T> d_y, MatrixView<T> d_gate, MatrixView<T> d_up);

}  // namespace masque::kernel
