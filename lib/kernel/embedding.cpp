#include "kernel/embedding.hpp"

#include <algorithm>
#include <complex>

#include "base/error.hpp"
#include "kernel/norm_rows.hpp"
#include "kernel/parallel.hpp"

namespace masque::kernel {
namespace {

/// Calls work(table row, row of y) for every row of y, in parallel.
template <class I, class Work>
void for_rows(Index table_rows, std::span<const I> ids, Index columns, const Work& work) {
  const auto rows = static_cast<Index>(ids.size());
  for (const I id : ids) MASQUE_CHECK(id >= 0 && id < table_rows);
  parallel_ranges(rows, 65536 / std::max<Index>(columns, 1) + 1, [&](Index begin, Index end) {
    for (Index i = begin; i < end; ++i) work(ids[static_cast<std::size_t>(i)], i);
  });
}

}  // namespace

template <class T, class I>
void embedding_forward(MatrixView<const T> table, std::span<const I> ids, MatrixView<T> y) {
  MASQUE_CHECK(y.columns == table.columns && y.rows == static_cast<Index>(ids.size()));
  for_rows(table.rows, ids, y.columns,
           [&](I id, Index i) { std::copy_n(table.row(id), table.columns, y.row(i)); });
}

template <class T, class I>
void embedding_add(MatrixView<const T> table, std::span<const I> ids, MatrixView<T> y) {
  MASQUE_CHECK(y.columns == table.columns && y.rows == static_cast<Index>(ids.size()));
  for_rows(table.rows, ids, y.columns, [&](I id, Index i) {
    const T* from = table.row(id);
    T* to = y.row(i);
    add_rows(const_cast<const T*>(to), from, table.columns, to);
  });
}

template <class T, class I>
void embedding_backward(std::span<const I> ids, MatrixView<const T> d_y, MatrixView<T> d_table) {
  if (d_table.data == nullptr) return;
  MASQUE_CHECK(d_y.columns == d_table.columns && d_y.rows == static_cast<Index>(ids.size()));
  for (const I id : ids) MASQUE_CHECK(id >= 0 && id < d_table.rows);
  // Rows may repeat: threads share columns, not rows.
  parallel_ranges(d_y.columns, 64, [&](Index begin, Index end) {
    for (Index i = 0; i < d_y.rows; ++i) {
      T* to = d_table.row(ids[static_cast<std::size_t>(i)]);
      add_rows(const_cast<const T*>(to) + begin, d_y.row(i) + begin, end - begin, to + begin);
    }
  });
}

#define MASQUE_INSTANTIATE(T, I)                                                                 \
  template void embedding_forward<T, I>(MatrixView<const T>, std::span<const I>, MatrixView<T>); \
  template void embedding_add<T, I>(MatrixView<const T>, std::span<const I>, MatrixView<T>);     \
  template void embedding_backward<T, I>(std::span<const I>, MatrixView<const T>, MatrixView<T>);
MASQUE_INSTANTIATE(float, TokenId)
MASQUE_INSTANTIATE(float, Index)
MASQUE_INSTANTIATE(double, TokenId)
MASQUE_INSTANTIATE(double, Index)
MASQUE_INSTANTIATE(std::complex<double>, TokenId)
MASQUE_INSTANTIATE(std::complex<double>, Index)
#undef MASQUE_INSTANTIATE

}  // namespace masque::kernel
