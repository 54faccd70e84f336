#include "nn/fft.hpp"

#include <bit>
#include <cmath>
#include <numbers>
#include <utility>

#include "base/error.hpp"

namespace masque::nn {
namespace {

using Complex = std::complex<double>;

/// e^{−2πi part / whole}
Complex root(Index part, Index whole) {
  const double angle =
      -2 * std::numbers::pi * static_cast<double>(part) / static_cast<double>(whole);
  return {std::cos(angle), std::sin(angle)};
}

/// The operator of std::complex also repairs infinities, at several times the cost.
Complex times(const Complex& a, const Complex& b) {
  return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
}

Index padded_size(Index n) {
  MASQUE_CHECK(n >= 1);
  const auto length = static_cast<std::uint64_t>(n);
  return static_cast<Index>(std::has_single_bit(length) ? length : std::bit_ceil(2 * length - 1));
}

}  // namespace

Fourier::Fourier(Index n) : n_(n), size_(padded_size(n)) {
  roots_.reserve(static_cast<std::size_t>(size_ / 2));
  for (Index k = 0; k < size_ / 2; ++k) roots_.push_back(root(k, size_));
  if (size_ == n_) return;
  chirp_.reserve(static_cast<std::size_t>(n_));
  // k² modulo 2n, so that the angle stays exact: (k + 1)² = k² + 2k + 1.
  Index square = 0;
  for (Index k = 0; k < n_; ++k) {
    chirp_.push_back(root(square, Index{2} * n_));
    square = (square + Index{2} * k + 1) % (Index{2} * n_);
  }
  filter_.assign(static_cast<std::size_t>(size_), Complex{});
  const double scale = 1 / static_cast<double>(size_);
  for (std::size_t k = 0; k < chirp_.size(); ++k) {
    const Complex value = std::conj(chirp_[k]) * scale;
    filter_[k] = value;
    filter_[(filter_.size() - k) % filter_.size()] = value;
  }
  by_halves(filter_);
}

void Fourier::by_halves(std::span<Complex> x) const {
  const std::size_t n = x.size();
  for (std::size_t i = 1, reversed = 0; i < n; ++i) {
    std::size_t bit = n >> 1U;
    for (; (reversed & bit) != 0; bit >>= 1U) reversed ^= bit;
    reversed ^= bit;
    if (i < reversed) std::swap(x[i], x[reversed]);
  }
  for (std::size_t half = 1; half < n; half *= 2) {
    const std::size_t step = n / (2 * half);
    for (std::size_t first = 0; first < n; first += 2 * half) {
      for (std::size_t k = 0; k < half; ++k) {
        Complex& low = x[first + k];
        Complex& high = x[first + half + k];
        const Complex rotated = times(high, roots_[k * step]);
        high = low - rotated;
        low += rotated;
      }
    }
  }
}

void Fourier::transform(std::span<Complex> x) const {
  MASQUE_CHECK(static_cast<Index>(x.size()) == n_);
  if (chirp_.empty()) {
    by_halves(x);
    return;
  }
  std::vector<Complex> work(filter_.size());
  for (std::size_t k = 0; k < x.size(); ++k) work[k] = times(x[k], chirp_[k]);
  by_halves(work);
  // The inverse transform is the conjugate of the transform of the conjugate.
  for (std::size_t k = 0; k < work.size(); ++k) work[k] = std::conj(times(work[k], filter_[k]));
  by_halves(work);
  for (std::size_t k = 0; k < x.size(); ++k) x[k] = times(std::conj(work[k]), chirp_[k]);
}

}  // namespace masque::nn
