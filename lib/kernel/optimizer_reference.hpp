// The definition of the optimizers: a number at a time.
#pragma once

#include <cmath>
#include <limits>

#include "kernel/optimizer.hpp"

namespace masque::kernel::reference {

/// The settings as factors of one step.
template <class T>
struct StepFactors {
  explicit StepFactors(const OptimizerSettings& s)
      : scale(static_cast<T>(s.gradient_scale)),
        beta2(static_cast<T>(s.beta2)),
        rest1(static_cast<T>(1 - s.beta1)),
        rest2(static_cast<T>(1 - s.beta2)),
        debias1(static_cast<T>(1 / (1 - std::pow(s.beta1, static_cast<double>(s.step))))),
        root2(static_cast<T>(1 / std::sqrt(1 - std::pow(s.beta2, static_cast<double>(s.step))))),
        epsilon(static_cast<T>(s.epsilon)),
        kept(static_cast<T>(1 - s.learning_rate * s.weight_decay)),
        decay(static_cast<T>(s.weight_decay)),
        rate(static_cast<T>(s.learning_rate)) {}

  T scale, beta2, rest1, rest2, debias1, root2, epsilon, kept, decay, rate;
};

/// Zero instead of a subnormal number. The first moment of a weight without gradients shrinks to
/// them within a thousand steps, and stays: rounding keeps it from zero. Processors take a hundred
/// times longer for each.
template <class T>
[[gnu::always_inline]] inline T without_subnormal(T x) {
  return std::abs(x) < std::numeric_limits<T>::min() ? T(0) : x;
}

/// Updates the moments; returns m̂ / (√v̂ + ε).
template <class T>
[[gnu::always_inline]] inline T adam_direction(const StepFactors<T>& f, T gradient, T& first,
                                               T& second) {
  const T g = gradient * f.scale;
  first = without_subnormal(first + (g - first) * f.rest1);
  second = without_subnormal(second * f.beta2 + g * g * f.rest2);
  return first * f.debias1 / (std::sqrt(second) * f.root2 + f.epsilon);
}

/// The same from moments that are up to date.
template <class T>
[[gnu::always_inline]] inline T adam_direction(const StepFactors<T>& f, T first, T second) {
  return first * f.debias1 / (std::sqrt(second) * f.root2 + f.epsilon);
}

}  // namespace masque::kernel::reference
