// Every case of the table: float against double, gradients against complex steps, float gradients
// against double ones.
#include <algorithm>
#include <cmath>

#include <doctest/doctest.h>

#include "support/kernel_run.hpp"
#include "support/near.hpp"

namespace masque::test {
namespace {

template <class T>
std::vector<double> doubles(const Matrix<T>& matrix) {
  std::vector<double> result;
  for (const T value : matrix.span()) result.push_back(static_cast<double>(value));
  return result;
}

/// Largest error of a float result: c · √K · 2^-24 of the size of a sum of K terms, which for
/// products of unit normals is √K and else 1. Absolute, and the same relative to values above 1.
double tolerance(const KernelCase& c) {
  const auto terms = static_cast<double>(std::max({c.inputs, c.columns, Index{1}}));
  if (c.precision == kernel::Precision::kBf16) return 8 * std::sqrt(terms) * 0x1p-8;
  const double size = c.inputs > 0 ? std::sqrt(static_cast<double>(c.inputs)) : 1;
  return 4 * std::sqrt(terms) * size * 0x1p-24;
}

void check_float(const KernelCase& c) {
  CAPTURE(c.name);
  CAPTURE(c.rows);
  CAPTURE(c.columns);
  CAPTURE(c.inputs);
  KernelRun<float> fast(c);
  KernelRun<double> exact(c);
  fast.forward();
  exact.forward();
  fast.read_back();
  exact.read_back();
  const double allowed = tolerance(c);
  CHECK(far_off(doubles(fast.result), doubles(exact.result), allowed, allowed) == "");
  if (!c.has_backward()) return;
  fast.backward();
  exact.backward();
  for (std::size_t i = 0; i < exact.gradients.size(); ++i) {
    CAPTURE(i);
    // Gradients of weights are sums over rows, too.
    const double more = allowed * std::sqrt(static_cast<double>(c.rows)) * 4;
    CHECK(far_off(doubles(fast.gradients[i]), doubles(exact.gradients[i]), more, more) == "");
  }
}

/// The imaginary part of Σ d_result ⊙ result, by the step.
double derivative(KernelRun<std::complex<double>>& run, std::complex<double>& place) {
  constexpr double kStep = 1e-50;
  const std::complex<double> before = place;
  place += std::complex<double>(0, kStep);
  run.forward();
  place = before;
  std::complex<double> sum = 0;
  for (std::size_t i = 0; i < run.result.span().size(); ++i) {
    sum += run.d_result.span()[i] * run.result.span()[i];
  }
  return sum.imag() / kStep;
}

void check_gradient(const KernelCase& c) {
  CAPTURE(c.name);
  CAPTURE(c.columns);
  KernelRun<double> exact(c);
  exact.forward();
  exact.backward();
  KernelRun<std::complex<double>> step(c);
  for (std::size_t i = 0; i < step.inputs.size(); ++i) {
    CAPTURE(i);
    const auto places = step.inputs[i].span();
    std::vector<double> found, expected;
    const std::size_t stride = places.size() / 200 + 1;
    double largest = 1;
    for (std::size_t j = 0; j < places.size(); j += stride) {
      expected.push_back(0.25 + derivative(step, places[j]));  // gradients are added
      found.push_back(exact.gradients[i].span()[j]);
      largest = std::max(largest, std::fabs(expected.back()));
    }
    CHECK(far_off(found, expected, 1e-12 * largest, 0) == "");
  }
}

TEST_CASE("float kernels are as near to double ones as rounding allows") {
  for (const KernelCase& c : small_kernel_cases()) check_float(c);
}

TEST_CASE("float kernels at the shapes that are timed") {
  for (const KernelCase& c : large_kernel_cases()) {
    if (c.work() < 4e8) check_float(c);
  }
}

TEST_CASE("gradients are those of complex steps") {
  for (const KernelCase& c : small_kernel_cases()) {
    if (c.has_backward()) check_gradient(c);
  }
}

}  // namespace
}  // namespace masque::test
