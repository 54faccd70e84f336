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

/// tanh(log(1 + e^x)) of `x`, as n / (n + 2) with n = e^2x + 2 e^x: no power overflows.
template <class T>
T tanh_of_softplus(T x) {
  using std::exp;
  const bool negative = real_part(x) < 0;
  const T e = exp(negative ? x : -x);
  const T n = negative ? e * (e + T(2)) : T(1) + T(2) * e;
  return n / (n + (negative ? T(2) : T(2) * e * e));
}

/// log(1 + e^x) of `x`: no power overflows.
template <class T>
T softplus_of(T x) {
  using std::exp;
  using std::log;
  // log(1 + z) = 2 artanh(z / (2 + z)), which keeps small z, of complex numbers too.
  const bool negative = real_part(x) < 0;
  const T z = exp(negative ? x : -x);
  const T log_one_plus = T(2) * std::atanh(z / (T(2) + z));
  return negative ? log_one_plus : x + log_one_plus;
}

/// What the activation kLaplace takes the erf of: (x − μ) / (σ √2) of `x`.
template <class T>
T laplace_argument(T x) {
  return (x - number<T>(0.707107)) * number<T>(1 / (0.282095 * std::numbers::sqrt2));
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
    case Activation::kQuickGelu: return x * sigmoid(number<T>(1.702) * x);
    case Activation::kClippedGelu: {
      const T y = activation_value(Activation::kGelu, x);
      return real_part(y) > 10 ? T(10) : y;
    }
    case Activation::kMish: return x * tanh_of_softplus(x);
    case Activation::kLeakyRelu: return real_part(x) < 0 ? number<T>(0.01) * x : x;
    case Activation::kRelu6:
      return real_part(x) > 6 ? T(6) : activation_value(Activation::kRelu, x);
    case Activation::kLaplace: return number<T>(0.5) * (T(1) + erf_of(laplace_argument(x)));
    case Activation::kHardSwish:
      return real_part(x) <= -3 ? x * T(0) : real_part(x) >= 3 ? x : x * (x + T(3)) / T(6);
    case Activation::kSqrtSoftplus: return std::sqrt(softplus_of(x));
  }
  return x;
}

/// The derivative f′(x) of the activation `f` at `x`; where the slope jumps, as torch: 0 at 0 for
/// kRelu and kRelu6, 0 at 6, 0.01 at 0 for kLeakyRelu.
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
    case Activation::kQuickGelu: {
      const T s = sigmoid(number<T>(1.702) * x);
      return s * (T(1) + number<T>(1.702) * x * (T(1) - s));
    }
    case Activation::kClippedGelu:
      return real_part(activation_value(Activation::kGelu, x)) > 10
                 ? T(0)
                 : activation_slope(Activation::kGelu, x);
    case Activation::kMish: {  // t + x σ(x) (1 − t²)
      const T t = tanh_of_softplus(x);
      return t + x * sigmoid_of(x) * (T(1) - t * t);
    }
    case Activation::kLeakyRelu: return real_part(x) > 0 ? T(1) : number<T>(0.01);
    case Activation::kRelu6: return real_part(x) > 0 && real_part(x) < 6 ? T(1) : T(0);
    case Activation::kLaplace: {  // the density of the normal distribution
      const T z = laplace_argument(x);
      return std::exp(-z * z) *
             number<T>(std::numbers::inv_sqrtpi / (0.282095 * std::numbers::sqrt2));
    }
    case Activation::kHardSwish:
      if (real_part(x) <= -3) return T(0);
      return real_part(x) >= 3 ? T(1) : x / T(3) + number<T>(0.5);
    case Activation::kSqrtSoftplus:
      return number<T>(0.5) * sigmoid_of(x) / std::sqrt(softplus_of(x));
  }
  return T(1);
}

}  // namespace masque::kernel::reference
