#include "nn/two_tower.hpp"

#include <algorithm>
#include <complex>

#include "base/error.hpp"

namespace masque::nn {

template <class T>
void join_towers(MatrixView<const T> forward, MatrixView<const T> backward, MatrixView<T> out) {
  MASQUE_CHECK(forward.rows == out.rows && backward.rows == out.rows &&
               forward.columns + backward.columns == out.columns);
  const auto copy = [](MatrixView<const T> from, Index row, T* to) {
    if (row < 0 || row >= from.rows) {
      std::fill_n(to, from.columns, T{});
    } else {
      std::copy_n(from.row(row), from.columns, to);
    }
  };
  for (Index i = 0; i < out.rows; ++i) {
    copy(forward, i - 1, out.row(i));
    copy(backward, i + 1, out.row(i) + forward.columns);
  }
}

template <class T>
void join_towers_backward(MatrixView<const T> d_out, MatrixView<T> d_forward,
                          MatrixView<T> d_backward) {
  MASQUE_CHECK(d_forward.rows == d_out.rows && d_backward.rows == d_out.rows &&
               d_forward.columns + d_backward.columns == d_out.columns);
  for (Index i = 1; i < d_out.rows; ++i) {
    for (Index e = 0; e < d_forward.columns; ++e) d_forward.at(i - 1, e) += d_out.at(i, e);
    for (Index e = 0; e < d_backward.columns; ++e) {
      d_backward.at(i, e) += d_out.at(i - 1, d_forward.columns + e);
    }
  }
}

template void join_towers(MatrixView<const float>, MatrixView<const float>, MatrixView<float>);
template void join_towers(MatrixView<const double>, MatrixView<const double>, MatrixView<double>);
template void join_towers(MatrixView<const std::complex<double>>,
                          MatrixView<const std::complex<double>>, MatrixView<std::complex<double>>);
template void join_towers_backward(MatrixView<const float>, MatrixView<float>, MatrixView<float>);
template void join_towers_backward(MatrixView<const double>, MatrixView<double>,
                                   MatrixView<double>);

}  // namespace masque::nn
