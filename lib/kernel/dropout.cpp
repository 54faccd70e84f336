#include "kernel/dropout.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <complex>

#include "base/error.hpp"
#include "base/vectorize.hpp"
#include "kernel/parallel.hpp"

namespace masque::kernel {
namespace {

/// Elements whose word is at most `limit` fall.
template <class T>
void drop_words(const std::uint32_t* words, std::uint32_t limit, T kept, Index n, T* x) {
  for (Index j = 0; j < n; ++j) x[j] = words[j] <= limit ? T(0) : x[j] * kept;
}
MASQUE_VECTORIZE void drop_words(const std::uint32_t* words, std::uint32_t limit, float kept,
                                 Index n, float* x) {
  for (Index j = 0; j < n; ++j) x[j] = words[j] <= limit ? 0.0F : x[j] * kept;
}

/// Elements `number` … of the stream.
template <class T>
void drop_row(const RandomStream& stream, std::uint64_t number, std::uint32_t limit, T kept,
              Index n, T* x) {
  std::array<std::uint32_t, 256> words;
  for (Index done = 0; done < n;) {
    const std::uint64_t at = number + static_cast<std::uint64_t>(done);
    const auto skipped = static_cast<Index>(at % 4);
    const Index count = std::min(std::ssize(words) - skipped, n - done);
    stream.words(at - at % 4, static_cast<std::size_t>(skipped + count), words.data());
    drop_words(words.data() + skipped, limit, kept, count, x + done);
    done += count;
  }
}

template <class T>
void drop(double probability, const RandomStream& stream, std::uint64_t first, MatrixView<T> x) {
  MASQUE_CHECK(probability >= 0 && probability < 1);
  if (probability == 0) return;
  const T kept = static_cast<T>(1 / (1 - probability));
  // The last word below probability · 2³².
  const auto limit = static_cast<std::uint32_t>(std::ceil(probability * 0x1p32) - 1);
  parallel_ranges(x.rows, 64, [&](Index begin, Index end) {
    for (Index i = begin; i < end; ++i) {
      drop_row(stream, first + static_cast<std::uint64_t>(i * x.columns), limit, kept, x.columns,
               x.row(i));
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
