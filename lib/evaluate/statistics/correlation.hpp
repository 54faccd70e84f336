// Correlation of two lists of numbers.
#pragma once

#include <span>
#include <vector>

namespace masque::evaluate {

/// The ranks of `values`, from 1; equal values share the mean of theirs. NaN must not occur. Cost
/// O(n log n).
std::vector<double> ranks(std::span<const double> values);

/// Pearson's r of `x` and `y`, of equal length; NaN with fewer than two values or where one list
/// does not vary.
double pearson(std::span<const double> x, std::span<const double> y);

/// Spearman's rho of `x` and `y`: pearson() of their ranks().
double spearman(std::span<const double> x, std::span<const double> y);

}  // namespace masque::evaluate
