#include "model/forward/convolution_windows.hpp"

#include <algorithm>
#include <complex>

namespace masque::model {

namespace {

/// Calls visit(row, neighbour, row of the neighbour) where there is one.
template <class Visit>
void for_neighbours(std::span<const Index> begins, Index size, const Visit& visit) {
  for (std::size_t s = 0; s + 1 < begins.size(); ++s) {
    for (Index i = begins[s]; i < begins[s + 1]; ++i) {
      for (Index k = 0; k < size; ++k) {
        const Index from = i + k - (size - 1) / 2;
        if (from >= begins[s] && from < begins[s + 1]) visit(i, k, from);
      }
    }
  }
}

}  // namespace

template <class T>
void convolution_windows(MatrixView<const T> x, std::span<const Index> begins, Index size,
                         MatrixView<T> windows) {
  for (Index i = 0; i < windows.rows; ++i) std::fill_n(windows.row(i), windows.columns, T{});
  for_neighbours(begins, size, [&](Index row, Index k, Index from) {
    for (Index c = 0; c < x.columns; ++c) windows.at(row, c * size + k) = x.at(from, c);
  });
}

template <class T>
void convolution_windows_backward(MatrixView<const T> d_windows, std::span<const Index> begins,
                                  Index size, MatrixView<T> d_x) {
  for_neighbours(begins, size, [&](Index row, Index k, Index from) {
    for (Index c = 0; c < d_x.columns; ++c) d_x.at(from, c) += d_windows.at(row, c * size + k);
  });
}

#define MASQUE_INSTANTIATE(T)                                                                    \
  template void convolution_windows(MatrixView<const T>, std::span<const Index>, Index,          \
                                    MatrixView<T>);                                              \
  template void convolution_windows_backward(MatrixView<const T>, std::span<const Index>, Index, \
                                             MatrixView<T>);
MASQUE_INSTANTIATE(float)
MASQUE_INSTANTIATE(double)
MASQUE_INSTANTIATE(std::complex<double>)
#undef MASQUE_INSTANTIATE

}  // namespace masque::model
