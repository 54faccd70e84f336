#include "kernel/dropout.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <complex>
#include <type_traits>

#include "base/error.hpp"
#include "base/processor/vectorize.hpp"
#include "kernel/parallel.hpp"

namespace masque::kernel {
namespace {

/// x ← x · kept, or 0 where the word is below `limit`.
template <class T>
void drop_run(const std::uint32_t* words, std::uint32_t limit, T kept, Index n, T* x) {
  for (Index j = 0; j < n; ++j) x[j] = words[j] < limit ? T(0) : x[j] * kept;
}
inline void drop_floats(const std::uint32_t* words, std::uint32_t limit, float kept, Index n,
                        float* x) {
  for (Index j = 0; j < n; ++j) {
    const std::uint32_t mask = 0U - static_cast<std::uint32_t>(words[j] >= limit);
    x[j] = std::bit_cast<float>(std::bit_cast<std::uint32_t>(x[j] * kept) & mask);
  }
}

template <class T>
void drop(double probability, const RandomStream& stream, std::uint64_t first, MatrixView<T> x) {
  MASQUE_CHECK(probability >= 0 && probability < 1);
  if (probability == 0) return;
  constexpr Index kRun = 1024;
  const T kept = static_cast<T>(1 / (1 - probability));
  const auto limit =
      static_cast<std::uint32_t>(std::min(std::ceil(probability * 0x1p32), 0x1p32 - 1));
  parallel_ranges(x.rows, row_grain(x.columns), [&](Index begin, Index end) {
    std::array<std::uint32_t, std::size_t{kRun} + 4> words;
    for (Index i = begin; i < end; ++i) {
      for (Index j = 0; j < x.columns; j += kRun) {
        const Index count = std::min(kRun, x.columns - j);
        const std::uint64_t number = first + static_cast<std::uint64_t>(i * x.columns + j);
        const std::uint64_t skipped = number % 4;  // words of the first block
        stream.words(number / 4, static_cast<std::size_t>(count) + skipped, words.data());
        if constexpr (std::is_same_v<T, float>) {
          vectorized<drop_floats>(words.data() + skipped, limit, kept, count, x.row(i) + j);
        } else {
          drop_run(words.data() + skipped, limit, kept, count, x.row(i) + j);
        }
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
