// The definition of the optimizers: a number at a time.
#pragma once

#include <cmath>
#include <limits>

#include "kernel/optimizer.hpp"

namespace masque::kernel::reference {

/// The settings as factors of one step.
template <class T>
struct StepFactors {
  /// The factors of the step that `s` describes, computed in double and rounded to T.
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

  T scale,      ///< factor of gradients
      beta2,    ///< decay of the second moment
      rest1,    ///< 1 − beta1
      rest2,    ///< 1 − beta2
      debias1,  ///< 1 / (1 − beta1^step)
      root2,    ///< 1 / √(1 − beta2^step)
      epsilon,  ///< ε
      kept,     ///< 1 − η λ
      decay,    ///< λ
      rate;     ///< η
};

/// Zero instead of a subnormal number, else `x`. The first moment of a weight without gradients
/// shrinks to them within a thousand steps, and stays: rounding keeps it from zero. Processors take
/// a hundred times longer for each.
template <class T>
[[gnu::always_inline]] inline T without_subnormal(T x) {
  return std::abs(x) < std::numeric_limits<T>::min() ? T(0) : x;
}

/// Updates the moments `first` and `second` with `gradient` · f.scale; returns m̂ / (√v̂ + ε). `f`
/// has the factors of the step.
template <class T>
[[gnu::always_inline]] inline T adam_direction(const StepFactors<T>& f, T gradient, T& first,
                                               T& second) {
  const T g = gradient * f.scale;
  first = without_subnormal(first + (g - first) * f.rest1);
  second = without_subnormal(second * f.beta2 + g * g * f.rest2);
  return first * f.debias1 / (std::sqrt(second) * f.root2 + f.epsilon);
}

/// The same m̂ / (√v̂ + ε) from moments `first` and `second` that are up to date; `f`
/// has the factors of the step.
template <class T>
[[gnu::always_inline]] inline T adam_direction(const StepFactors<T>& f, T first, T second) {
  return first * f.debias1 / (std::sqrt(second) * f.root2 + f.epsilon);
}

}  // namespace masque::kernel::reference
