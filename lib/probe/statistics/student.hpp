// Quantiles of Student's t and of the normal distribution.
#pragma once

#include "base/types.hpp"

namespace masque::probe {

/// Returns the probability that |T| is at most `t` ≥ 0 for a T of Student's distribution with
/// `freedom` ≥ 1 degrees of freedom: the finite sums of Abramowitz and Stegun, 26.7.3 and 26.7.4.
/// Cost O(freedom).
double student_probability(double t, Index freedom);

/// Returns the t for which student_probability(t, `freedom`) is `level`, 0 < level < 1; beyond 2000
/// degrees of freedom from the first four terms of Abramowitz and Stegun, 26.7.5. To 10⁻¹⁰ of it
/// for levels up to 0.999. Cost O(freedom) up to 2000, then O(1).
double student_quantile(double level, Index freedom);

/// Returns the z for which a standard normal value is from −z to z with the probability `level`, 0
/// < level < 1. To 10⁻¹² of it.
double normal_quantile(double level);

}  // namespace masque::probe
