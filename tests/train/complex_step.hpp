// Gradients by complex steps: Im f(x + ih) / h, without a difference of large numbers.
#pragma once

#include <algorithm>
#include <cmath>
#include <complex>
#include <functional>
#include <vector>

#include <doctest/doctest.h>

#include "base/random/random.hpp"
#include "train/network/parameters.hpp"

namespace masque::test {

using Complex = std::complex<double>;

/// Compares the gradients that parameters hold with those of `loss`, one random direction a tensor.
/// `loss` gets the parameters as complex numbers, at the same indices. `wanted` says which tensors.
inline void check_gradients(train::Parameters<double>& parameters,
                            const std::function<Complex(train::Parameters<Complex>&)>& loss,
                            const std::function<bool(const train::Parameter&)>& wanted) {
  constexpr double kStep = 1e-40;
  train::Parameters<Complex> moved;
  double largest = 0;
  for (Index i = 0; i < parameters.count(); ++i) {
    moved.add(parameters[i]);
    const MatrixView<double> own = parameters.gradient(i);
    for (const double g : std::span(own.data, static_cast<std::size_t>(own.rows * own.columns)))
      largest = std::max(largest, std::abs(g));
  }
  moved.fit();
  std::ranges::copy(parameters.values(), moved.values().begin());
  Index checked = 0;
  for (Index i = 0; i < parameters.count(); ++i) {
    if (!wanted(parameters[i])) continue;
    CAPTURE(parameters[i].name);
    std::vector<double> direction(static_cast<std::size_t>(parameters[i].size()));
    RandomStream(9, parameters[i].name).normal(0, direction.size(), direction.data());
    const double* const gradient = parameters.gradient(i).data;
    const double* const value = parameters.value(i).data;
    double expected = 0;
    for (std::size_t k = 0; k < direction.size(); ++k) {
      expected += direction[k] * gradient[k];
      moved.value(i).data[k] = {value[k], kStep * direction[k]};
    }
    const double found = loss(moved).imag() / kStep;
    CHECK(std::abs(found - expected) <= 1e-9 * std::max({1.0, largest, std::abs(found)}));
    std::copy_n(value, direction.size(), moved.value(i).data);
    ++checked;
  }
  CHECK(checked > 0);
}

}  // namespace masque::test
