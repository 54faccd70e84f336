#include "kernel/rotary.hpp"

#include <cmath>
#include <complex>

#include "base/error.hpp"
#include "kernel/parallel.hpp"

namespace masque::kernel {
namespace {

/// Turns one head by the angles whose cosines and sines are given.
template <class T>
void turn_head(RotaryLayout layout, const std::vector<T>& cosine, const std::vector<T>& sine,
               T* x) {
  const std::size_t pairs = cosine.size();
  const std::size_t step = layout == RotaryLayout::kAdjacent ? 2 : 1;
  T* other = layout == RotaryLayout::kAdjacent ? x + 1 : x + pairs;
  for (std::size_t t = 0; t < pairs; ++t) {
    const T a = x[t * step], b = other[t * step];
    x[t * step] = a * cosine[t] - b * sine[t];
    other[t * step] = b * cosine[t] + a * sine[t];
  }
}

/// direction 1 turns forward, −1 back: the transposed turn is the gradient.
template <class T>
void turn(RotaryLayout layout, std::span<const double> frequencies,
          std::span<const Index> positions, Index head_size, double factor, double direction,
          bool float_angles, MatrixView<T> x) {
  const std::size_t pairs = frequencies.size();
  MASQUE_CHECK(static_cast<Index>(2 * pairs) <= head_size && x.columns % head_size == 0);
  MASQUE_CHECK(static_cast<Index>(positions.size()) == x.rows);
  parallel_ranges(x.rows, 8, [&](Index begin, Index end) {
    std::vector<T> cosine(pairs), sine(pairs);
    for (Index i = begin; i < end; ++i) {
      const auto position = static_cast<double>(positions[static_cast<std::size_t>(i)]);
      if (i == begin ||
          positions[static_cast<std::size_t>(i)] != positions[static_cast<std::size_t>(i - 1)]) {
        for (std::size_t t = 0; t < pairs; ++t) {
          double angle = position * frequencies[t];
          if (float_angles) angle = static_cast<float>(angle);
          cosine[t] = static_cast<T>(factor * std::cos(angle));
          sine[t] = static_cast<T>(direction * factor * std::sin(angle));
        }
      }
      for (Index head = 0; head < x.columns; head += head_size) {
        turn_head(layout, cosine, sine, x.row(i) + head);
      }
    }
  });
}

}  // namespace

std::vector<double> rotary_frequencies(double base, Index size) {
  MASQUE_CHECK(size >= 0 && size % 2 == 0);
  std::vector<double> result;
  result.reserve(static_cast<std::size_t>(size / 2));
  for (Index t = 0; t < size / 2; ++t) {
    result.push_back(std::pow(base, -2.0 * static_cast<double>(t) / static_cast<double>(size)));
  }
  return result;
}

template <class T>
void rotary_forward(RotaryLayout layout, std::span<const double> frequencies,
                    std::span<const Index> positions, Index head_size, double factor,
                    MatrixView<T> x, bool float_angles) {
  turn(layout, frequencies, positions, head_size, factor, 1.0, float_angles, x);
}

template <class T>
void rotary_backward(RotaryLayout layout, std::span<const double> frequencies,
                     std::span<const Index> positions, Index head_size, double factor,
                     MatrixView<T> d_x, bool float_angles) {
  turn(layout, frequencies, positions, head_size, factor, -1.0, float_angles, d_x);
}

#define MASQUE_INSTANTIATE(T)                                                                     \
  template void rotary_forward<T>(RotaryLayout, std::span<const double>, std::span<const Index>,  \
                                  Index, double, MatrixView<T>, bool);                            \
  template void rotary_backward<T>(RotaryLayout, std::span<const double>, std::span<const Index>, \
                                   Index, double, MatrixView<T>, bool);
MASQUE_INSTANTIATE(float)
MASQUE_INSTANTIATE(double)
MASQUE_INSTANTIATE(std::complex<double>)
#undef MASQUE_INSTANTIATE

}  // namespace masque::kernel
