// The definition of the activations: a number at a time.
#pragma once

#include "kernel/activation.hpp"
#include "kernel/number/scalar.hpp"

namespace masque::kernel::reference {

/// σ(x) = 1 / (1 + e^−x) of `x`. sigmoid_of() rounds differently where x < 0, and results in f64
/// keep their bits.
template <class T>
T sigmoid(T x) {
  return T(1) / (T(1) + std::exp(-x));
}

/// √(2/π) (x + 0.044715 x³) of `x`: what gelu_tanh takes the tanh of.
template <class T>
T gelu_tanh_argument(T x) {
  return number<T>(std::numbers::sqrt2 * std::numbers::inv_sqrtpi) *
         (x + number<T>(0.044715) * x * x * x);
}

/// The activation `f` of `x`.
template <class T>
T activation_value(Activation f, T x) {
  switch (f) {
    case Activation::kNone: return x;
    case Activation::kGelu:
      return number<T>(0.5) * x * (T(1) + erf_of(x * number<T>(1 / std::numbers::sqrt2)));
    case Activation::kGeluTanh:
      return number<T>(0.5) * x * (T(1) + std::tanh(gelu_tanh_argument(x)));
    case Activation::kRelu: return real_part(x) > 0 ? x : x * T(0);  // NaN stays
    case Activation::kSquaredRelu: return real_part(x) > 0 ? x * x : x * T(0);
    case Activation::kSwish: return x * sigmoid(x);
    case Activation::kTanh: return std::tanh(x);
    case Activation::kSigmoid: return sigmoid(x);
  }
  return x;
}

/// The derivative f′(x) of the activation `f` at `x`; 0 at 0 for kRelu.
template <class T>
T activation_slope(Activation f, T x) {
  switch (f) {
    case Activation::kNone: return T(1);
    case Activation::kGelu:  // Φ(x) + x φ(x)
      return number<T>(0.5) * (T(1) + erf_of(x * number<T>(1 / std::numbers::sqrt2))) +
             x * std::exp(number<T>(-0.5) * x * x) *
                 number<T>(std::numbers::inv_sqrtpi / std::numbers::sqrt2);
    case Activation::kGeluTanh: {  // (1 + t + x (1 − t²) a′) / 2 with t = tanh a
      const T t = std::tanh(gelu_tanh_argument(x));
      const T inner = number<T>(std::numbers::sqrt2 * std::numbers::inv_sqrtpi) *
                      (T(1) + number<T>(3 * 0.044715) * x * x);
      return number<T>(0.5) * (T(1) + t + x * (T(1) - t * t) * inner);
    }
    case Activation::kRelu: return real_part(x) > 0 ? T(1) : T(0);
    case Activation::kSquaredRelu: return real_part(x) > 0 ? T(2) * x : T(0);
    case Activation::kSwish: {  // σ (1 + x (1 − σ))
      const T s = sigmoid(x);
      return s * (T(1) + x * (T(1) - s));
    }
    case Activation::kTanh: {
      const T t = std::tanh(x);
      return T(1) - t * t;
    }
    case Activation::kSigmoid: {
      const T s = sigmoid(x);
      return s * (T(1) - s);
    }
  }
  return T(1);
}

}  // namespace masque::kernel::reference
