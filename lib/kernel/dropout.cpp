#include "kernel/dropout.hpp"

#include <complex>

#include "base/error.hpp"
#include "kernel/parallel.hpp"

namespace masque::kernel {
namespace {

template <class T>
void drop(double probability, const RandomStream& stream, std::uint64_t first, MatrixView<T> x) {
  MASQUE_CHECK(probability >= 0 && probability < 1);
  if (probability == 0) return;
  const T kept = static_cast<T>(1 / (1 - probability));
  const double threshold = probability * 0x1p32;
  parallel_ranges(x.rows, 64, [&](Index begin, Index end) {
    for (Index i = begin; i < end; ++i) {
      std::uint64_t number = first + static_cast<std::uint64_t>(i * x.columns);
      PhiloxBlock block = stream.block(number / 4);
      T* row = x.row(i);
      for (Index j = 0; j < x.columns; ++j, ++number) {
        if (j > 0 && number % 4 == 0) block = stream.block(number / 4);
        row[j] = static_cast<double>(block[number % 4]) < threshold ? T(0) : row[j] * kept;
      }
    }
  });
}

}  // namespace

template <class T>
void dropout_forward(double probability, const RandomStream& stream, std::uint64_t first,
                     MatrixView<T> x) {
  drop(probability, stream, first, x);
}

template <class T>
void dropout_backward(double probability, const RandomStream& stream, std::uint64_t first,
                      MatrixView<T> d_x) {
  drop(probability, stream, first, d_x);
}

#define MASQUE_INSTANTIATE(T)                                                                  \
  template void dropout_forward<T>(double, const RandomStream&, std::uint64_t, MatrixView<T>); \
  template void dropout_backward<T>(double, const RandomStream&, std::uint64_t, MatrixView<T>);
MASQUE_INSTANTIATE(float)
MASQUE_INSTANTIATE(double)
MASQUE_INSTANTIATE(std::complex<double>)
#undef MASQUE_INSTANTIATE

}  // namespace masque::kernel
