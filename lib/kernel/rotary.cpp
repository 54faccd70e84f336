#include "kernel/rotary.hpp"

#include <cmath>
#include <complex>

#include "base/error.hpp"
#include "kernel/parallel.hpp"
#include "kernel/rotary_rows.hpp"

namespace masque::kernel {
namespace {

template <class T>
void rotate(RotaryLayout layout, const RotaryTable<T>& table, Index head_size, T direction,
            MatrixView<T> x) {
  const Index pairs = table.cosine.columns();
  MASQUE_CHECK(2 * pairs <= head_size && x.columns % head_size == 0);
  MASQUE_CHECK(table.cosine.rows() == x.rows);
  parallel_ranges(x.rows, 64, [&](Index begin, Index end) {
    for (Index i = begin; i < end; ++i) {
      rotate_row(layout, table.cosine.view().row(i), table.sine.view().row(i), pairs, direction,
                 head_size, x.columns, x.row(i));
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
RotaryTable<T> rotary_table(std::span<const double> frequencies, std::span<const Index> positions,
                            double factor, bool float_angles) {
  const auto pairs = static_cast<Index>(frequencies.size());
  RotaryTable<T> table{Matrix<T>(std::ssize(positions), pairs),
                       Matrix<T>(std::ssize(positions), pairs)};
  parallel_ranges(std::ssize(positions), 64, [&](Index begin, Index end) {
    for (Index i = begin; i < end; ++i) {
      const auto position = static_cast<double>(positions[static_cast<std::size_t>(i)]);
      for (Index t = 0; t < pairs; ++t) {
        double angle = position * frequencies[static_cast<std::size_t>(t)];
        if (float_angles) angle = static_cast<float>(angle);
        table.cosine.view().at(i, t) = static_cast<T>(factor * std::cos(angle));
        table.sine.view().at(i, t) = static_cast<T>(factor * std::sin(angle));
      }
    }
  });
  return table;  // NOLINTNEXTLINE(clang-analyzer-cplusplus.NewDeleteLeaks): both matrices move
}

template <class T>
void rotary_forward(RotaryLayout layout, const RotaryTable<T>& table, Index head_size,
                    MatrixView<T> x) {
  rotate(layout, table, head_size, T{1}, x);
}

template <class T>
void rotary_backward(RotaryLayout layout, const RotaryTable<T>& table, Index head_size,
                     MatrixView<T> d_x) {
  rotate(layout, table, head_size, T{-1}, d_x);
}

#define MASQUE_INSTANTIATE(T)                                                                   \
  template RotaryTable<T> rotary_table(std::span<const double>, std::span<const Index>, double, \
                                       bool);                                                   \
  template void rotary_forward<T>(RotaryLayout, const RotaryTable<T>&, Index, MatrixView<T>);   \
  template void rotary_backward<T>(RotaryLayout, const RotaryTable<T>&, Index, MatrixView<T>);
MASQUE_INSTANTIATE(float)
MASQUE_INSTANTIATE(double)
MASQUE_INSTANTIATE(std::complex<double>)
#undef MASQUE_INSTANTIATE

}  // namespace masque::kernel
