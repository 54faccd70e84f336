#include "kernel/softmax/softmax.hpp"

#include <algorithm>
#include <complex>

#include "base/divide.hpp"
#include "base/error.hpp"
#include "kernel/parallel.hpp"
#include "kernel/softmax/softmax_rows.hpp"

namespace masque::kernel {
template <class T>
void softmax_forward(MatrixView<T> x, std::span<const std::uint64_t> bits) {
  const Index words = divide_up(x.columns, 64);
  MASQUE_CHECK(bits.empty() || static_cast<Index>(bits.size()) == words * x.rows);
  parallel_ranges(x.rows, row_grain(x.columns), [&](Index begin, Index end) {
    for (Index i = begin; i < end; ++i) {
      softmax_row(x.row(i), x.columns, bits.empty() ? nullptr : bits.data() + i * words);
    }
  });
}

template <class T>
void softmax_backward(MatrixView<const T> weights, MatrixView<const T> d_weights,
                      MatrixView<T> d_scores) {
  MASQUE_CHECK(weights.rows == d_weights.rows && weights.columns == d_weights.columns);
  MASQUE_CHECK(weights.rows == d_scores.rows && weights.columns == d_scores.columns);
  parallel_ranges(weights.rows, row_grain(weights.columns), [&](Index begin, Index end) {
    for (Index i = begin; i < end; ++i) {
      softmax_row_backward(weights.row(i), d_weights.row(i), weights.columns, d_scores.row(i));
    }
  });
}

#define MASQUE_INSTANTIATE(T)                                                      \
  template void softmax_forward<T>(MatrixView<T>, std::span<const std::uint64_t>); \
  template void softmax_backward<T>(MatrixView<const T>, MatrixView<const T>, MatrixView<T>);
MASQUE_INSTANTIATE(float)
MASQUE_INSTANTIATE(double)
MASQUE_INSTANTIATE(std::complex<double>)
#undef MASQUE_INSTANTIATE

}  // namespace masque::kernel
