#include "kernel/product/pack_strips.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernel/product/pack_strips.cpp"
#include "base/processor/simd.hpp"

HWY_BEFORE_NAMESPACE();
namespace masque::kernel {
namespace HWY_NAMESPACE {

// Shuffles are the compiler's: from what they say it picks the instructions of each target.
#if HWY_TARGET == HWY_AVX3
inline constexpr int kSide = 16;
#elif HWY_TARGET == HWY_AVX2
inline constexpr int kSide = 8;
#else
inline constexpr int kSide = 4;
#endif
using Row __attribute__((vector_size(4 * kSide))) = float;
using Anywhere __attribute__((vector_size(4 * kSide), may_alias, aligned(4))) = float;

/// One step of a transposition of kSide × kSide: exchanges the blocks of kSize × kSize that are off
/// the diagonal.
template <int kSize, int... kLane>
HWY_INLINE void exchange(Row* rows, std::integer_sequence<int, kLane...> lanes) {
#pragma GCC unroll 16
  for (int i = 0; i < kSide; ++i) {
    if ((i & kSize) != 0) continue;
    const Row a = rows[i];
    const Row b = rows[i + kSize];
    rows[i] =
        __builtin_shufflevector(a, b, ((kLane & kSize) != 0 ? kLane - kSize + kSide : kLane)...);
    rows[i + kSize] =
        __builtin_shufflevector(a, b, ((kLane & kSize) != 0 ? kLane + kSide : kLane + kSize)...);
  }
  if constexpr (kSize > 1) exchange<kSize / 2>(rows, lanes);
}

/// out[16 k + i] = rows[i][k] for 16 rows and k < depth.
void transpose_strip(const float* const* rows, Index depth, float* out) {
  constexpr int kColumns = static_cast<int>(kStripColumns<float>);
  Index k = 0;
  for (; k + kSide <= depth; k += kSide) {
    for (int first = 0; first < kColumns; first += kSide) {
      Row block[std::size_t{kSide}];
#pragma GCC unroll 16
      for (int i = 0; i < kSide; ++i) {
        block[i] = *reinterpret_cast<const Anywhere*>(rows[first + i] + k);
      }
      exchange<kSide / 2>(block, std::make_integer_sequence<int, kSide>());
#pragma GCC unroll 16
      for (int i = 0; i < kSide; ++i) {
        *reinterpret_cast<Anywhere*>(out + (k + i) * kColumns + first) = block[i];
      }
    }
  }
  for (; k < depth; ++k) {
    for (int i = 0; i < kColumns; ++i) out[k * kColumns + i] = rows[i][k];
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace masque::kernel
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace masque::kernel {

namespace {

HWY_EXPORT(transpose_strip);

void transpose(const float* const* rows, Index depth, float* out) {
  HWY_DYNAMIC_DISPATCH(transpose_strip)(rows, depth, out);
}
void transpose(const double* const* rows, Index depth, double* out) {
  constexpr Index kColumns = kStripColumns<double>;
  for (Index k = 0; k < depth; ++k) {
    for (Index i = 0; i < kColumns; ++i) out[k * kColumns + i] = rows[i][k];
  }
}

template <class T>
std::span<const T* const> rows_of(const MatrixView<const T>& x) {
  thread_local std::vector<const T*> rows;
  rows.clear();
  for (Index i = 0; i < x.rows; ++i) rows.push_back(x.row(i));
  return rows;
}

}  // namespace

template <class T>
void pack_rows(std::span<const T* const> rows, Index first, Index count, const Strips<T>& out) {
  constexpr Index kColumns = kStripColumns<T>;
  // A few strips at a time, so that whole lines of a row are read.
  constexpr Index kStrips = 4;
  for (Index column = 0; column < count; column += kStrips * kColumns) {
    const Index some = std::min(kStrips * kColumns, count - column);
    T* to = out.from_column(column).data;
    for (const T* row : rows) {
      const T* from = row + first + column;
      Index j = 0;
      T* strip = to;
      for (; j + kColumns <= some; j += kColumns, strip += out.stride) {
        std::copy_n(from + j, kColumns, strip);
      }
      if (j < some) {
        std::copy_n(from + j, some - j, strip);
        std::fill(strip + (some - j), strip + kColumns, T{});
      }
      to += kColumns;
    }
  }
}

template <class T>
void pack_rows_transposed(std::span<const T* const> rows, Index depth, const Strips<T>& out) {
  constexpr std::size_t kColumns = static_cast<std::size_t>(kStripColumns<T>);
  for (std::size_t n = 0; n < rows.size(); n += kColumns) {
    const T* from[kColumns];
    for (std::size_t i = 0; i < kColumns; ++i) from[i] = rows[std::min(n + i, rows.size() - 1)];
    transpose(from, depth, out.from_column(static_cast<Index>(n)).data);
  }
}

template <class T>
void pack(const MatrixView<const T>& x, const Strips<T>& out) {
  pack_rows<T>(rows_of(x), 0, x.columns, out);
}

template <class T>
void pack_transposed(const MatrixView<const T>& x, const Strips<T>& out) {
  pack_rows_transposed<T>(rows_of(x), x.columns, out);
}

#define MASQUE_INSTANTIATE(T)                                                             \
  template void pack_rows(std::span<const T* const>, Index, Index, const Strips<T>&);     \
  template void pack_rows_transposed(std::span<const T* const>, Index, const Strips<T>&); \
  template void pack(const MatrixView<const T>&, const Strips<T>&);                       \
  template void pack_transposed(const MatrixView<const T>&, const Strips<T>&);
MASQUE_INSTANTIATE(float)
MASQUE_INSTANTIATE(double)
#undef MASQUE_INSTANTIATE

}  // namespace masque::kernel
#endif
