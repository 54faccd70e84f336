// Element-wise functions between the two products of a feed-forward layer.
//
// T is float (fast path), double or std::complex<double> (reference).
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "tensor/matrix.hpp"

namespace masque::kernel {

/// The element-wise function f of a feed-forward or gated layer.
enum class Activation {
  kNone,          ///< f(x) = x
  kGelu,          ///< x · Φ(x) by erf. Hendrycks and Gimpel 2016, arXiv:1606.08415
  kGeluTanh,      ///< 0.5 x (1 + tanh(√(2/π) (x + 0.044715 x³)))
  kRelu,          ///< max(x, 0)
  kSquaredRelu,   ///< max(x, 0)². So et al. 2021 (Primer), arXiv:2109.08668
  kSwish,         ///< x · σ(x), also called SiLU
  kTanh,          ///< tanh x
  kSigmoid,       ///< σ(x) = 1 / (1 + e^−x)
  kQuickGelu,     ///< x · σ(1.702 x). Hendrycks and Gimpel 2016, arXiv:1606.08415
  kClippedGelu,   ///< min(gelu(x), 10). Wu et al. 2020, arXiv:2004.09602
  kMish,          ///< x · tanh(log(1 + e^x)). Misra 2019, arXiv:1908.08681
  kLeakyRelu,     ///< max(x, 0) + 0.01 min(x, 0). Maas, Hannun and Ng 2013
  kRelu6,         ///< min(max(x, 0), 6). Howard et al. 2017, arXiv:1704.04861
  kLaplace,       ///< (1 + erf((x − 0.707107) / (0.282095 √2))) / 2. Ma et al. 2022 (Mega),
                  ///< arXiv:2209.10655
  kHardSwish,     ///< x · min(max(x + 3, 0), 6) / 6. Howard et al. 2019, arXiv:1905.02244
  kSqrtSoftplus,  ///< √(log(1 + e^x))
};

/// The activation called `name`, case-sensitive: "gelu", "gelu_tanh", "relu", "squared_relu",
/// "swish", "none", … and the spellings of config.json (gelu_new, gelu_fast, gelu_pytorch_tanh,
/// silu, relu2, gelu_10, linear, …). Nothing for any other name, and for functions with weights
/// (prelu, xielu).
std::optional<Activation> find_activation(std::string_view name);
/// All names of find_activation(), as "gelu, … or none", for messages.
std::string activation_names();

/// `x` ← `f`(x), element by element, in place. Parallel over rows.
template <class T>
void activation_forward(Activation f, MatrixView<T> x);
/// `y` ← `f`(`x`), element by element; both have one shape and do not overlap. Parallel over rows.
template <class T>
void activation_forward(Activation f, MatrixView<const T> x, MatrixView<T> y);

/// `d` ⊙= f′(`x`): the gradient by the outputs of activation `f` becomes that by its inputs `x`, of
/// the same shape. Parallel over rows.
template <class T>
void activation_backward(Activation f, MatrixView<const T> x, MatrixView<T> d);
/// `d_x` += f′(x) ⊙ `d_y`, where `f` is the activation and `x` the input of the forward
/// pass. All three have one shape.
template <class T>
void activation_backward(Activation f, MatrixView<const T> x, MatrixView<const T> d_y,
                         MatrixView<T> d_x);

/// `x` ← c · tanh(x / c) with c = `cap` > 0, in place: a soft bound. Parallel over rows. Bello et
/// al. 2016, arXiv:1611.09940.
template <class T>
void soft_cap(double cap, MatrixView<T> x);
/// `d` ⊙= 1 − (`y` / `cap`)²: the gradient by what soft_cap() gave, `y`, becomes that by what it
/// was given. 0 where y is infinite. All have one shape.
template <class T>
void soft_cap_backward(double cap, MatrixView<const T> y, MatrixView<T> d);

/// `y` = `f`(gate) ⊙ up: gated linear units; `gate`, `up` and y have one shape. y may be `gate`,
/// but not `up`. Dauphin et al. 2016, arXiv:1612.08083; Shazeer 2020, arXiv:2002.05202.
template <class T>
void gated_forward(Activation f, MatrixView<const T> gate, MatrixView<const T> up, MatrixView<T> y);
/// Gradients of gated_forward from `d_y`, the gradient by y: `d_up` += `f`(gate) ⊙ d_y and `d_gate`
/// += f′(gate) ⊙ `up` ⊙ d_y. `gate` is the one of the forward pass, before it. All have one shape;
/// what is added to must not overlap the others.
template <class T>
void gated_backward(Activation f, MatrixView<const T> gate, MatrixView<const T> up,
                    MatrixView<const T> d_y, MatrixView<T> d_gate, MatrixView<T> d_up);

}  // namespace masque::kernel
