// What the reference kernels need of their number type: float, double or std::complex<double>.
//
// Complex numbers are for derivatives by complex step: f(x + ih) has the imaginary part h f′(x).
#pragma once

#include <cmath>
#include <complex>
#include <numbers>

namespace masque::kernel::reference {

/// The real part of `x`, in double.
template <class T>
double real_part(T x) {
  return static_cast<double>(x);
}
inline double real_part(std::complex<double> x) { return x.real(); }

/// The number of type T with the value `x`.
template <class T>
T number(double x) {
  return static_cast<T>(x);
}

/// erf(x) of a real `x`.
template <class T>
T erf_of(T x) {
  return std::erf(x);
}
/// erf(x) of a complex `x`, to first order in the imaginary part, which is all
/// that a complex step needs.
inline std::complex<double> erf_of(std::complex<double> x) {
  const double slope = 2 * std::numbers::inv_sqrtpi * std::exp(-x.real() * x.real());
  return {std::erf(x.real()), slope * x.imag()};
}

/// σ(x) = 1 / (1 + e^−x) of `x`, of any size: no power overflows.
template <class T>
T sigmoid_of(T x) {
  using std::exp;
  const bool negative = real_part(x) < 0;
  const T e = exp(negative ? x : -x);
  return (negative ? e : T(1)) / (T(1) + e);
}

}  // namespace masque::kernel::reference
