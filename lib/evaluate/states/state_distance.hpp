// How far apart two states of the same token are.
#pragma once

#include <cmath>
#include <cstddef>
#include <span>

namespace masque::evaluate {

/// Two states of one token.
struct StateDistance {
  double distance = 0;  ///< |a − b| / |b|; of zeros 1, or 0 if both are zeros
  double cosine = 0;    ///< of the angle between them; of zeros 0, or 1 if both are zeros
};

/// Compares the state `a` with the state `b`, of as many numbers. In double.
template <class A, class B>
StateDistance compare_states(std::span<const A> a, std::span<const B> b) {
  double apart = 0, squares = 0, other_squares = 0, product = 0;
  for (std::size_t c = 0; c < a.size(); ++c) {
    const double x = a[c];
    const double y = b[c];
    apart += (x - y) * (x - y);
    squares += x * x;
    other_squares += y * y;
    product += x * y;
  }
  const double norms = std::sqrt(squares * other_squares);
  return {other_squares > 0 ? std::sqrt(apart / other_squares)
          : apart > 0       ? 1.0
                            : 0.0,
          norms > 0   ? product / norms
          : apart > 0 ? 0.0
                      : 1.0};
}

}  // namespace masque::evaluate
