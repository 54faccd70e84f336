// The register-blocked product, for one target and one kind of numbers. Included by
// packed_product.cpp for floats and doubles, and by packed_pairs.cpp for pairs of bfloat16.
#if defined(MASQUE_KERNEL_PACKED_PRODUCT_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef MASQUE_KERNEL_PACKED_PRODUCT_INL
#undef MASQUE_KERNEL_PACKED_PRODUCT_INL
#else
#define MASQUE_KERNEL_PACKED_PRODUCT_INL
#endif

#include "base/divide.hpp"
#include "kernel/number/group-inl.hpp"
#include "kernel/product/packed_product.hpp"

#ifndef MASQUE_BEFORE_PRODUCT
#define MASQUE_BEFORE_PRODUCT() HWY_BEFORE_NAMESPACE()
#define MASQUE_AFTER_PRODUCT() HWY_AFTER_NAMESPACE()
#endif

MASQUE_BEFORE_PRODUCT();
namespace masque::kernel {
namespace HWY_NAMESPACE {

/// Registers that hold sums, at most. The rest hold a row of b and an element of a.
#if HWY_TARGET == HWY_AVX3 || defined(__aarch64__)
inline constexpr int kRegisters = 24;
#elif HWY_TARGET == HWY_AVX2
inline constexpr int kRegisters = 12;
#else
inline constexpr int kRegisters = 8;
#endif

/// What is multiplied by one call of a block.
template <class T>
struct BlockTask {
  const T* a;
  Index row_step;
  Index depth_step;
  Index tile_step;  ///< as in LeftOperand
  Index depth;
  const T* b;
  Index strip_stride;
  T* c;
  Index c_stride;
  const T* start;  ///< what chains begin with, or what is added to them: c or the bias
  Index start_stride;
  const T* factors;  ///< of the rows, or nullptr
  Onto onto;
};

/// kRows rows times kStrips strips: the sums stay in registers. Numbers: the operations of Native.
template <class Numbers, int kRows, int kStrips, class T = typename Numbers::Number>
HWY_INLINE void multiply_block(const BlockTask<T>& t) {
  using Vector = typename Numbers::Vector;
  constexpr int kParts = static_cast<int>(kStripColumns<T>) / Numbers::kLanes;
  constexpr int kVectors = kStrips * kParts;
  constexpr Index kColumns = kStripColumns<T>;
  // Vector v is part v % kParts of strip v / kParts.
  const auto column = [](int v) { return v / kParts * kColumns + v % kParts * Numbers::kLanes; };
  Vector sums[std::size_t{kRows}][std::size_t{kVectors}];
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 64
    for (int v = 0; v < kVectors; ++v) {
      sums[r][v] = t.onto == Onto::kChain ? Numbers::load(t.start + r * t.start_stride + column(v))
                                          : Numbers::zero();
    }
  }
  // The result is read or written after all steps: until then it has come from memory.
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
    for (int s = 0; s < kStrips; ++s) __builtin_prefetch(t.c + r * t.c_stride + s * kColumns, 1);
  }
  const T* a = t.a;
  const T* b = t.b;
  for (Index k = 0; k < t.depth; ++k) {
    Vector row[std::size_t{kVectors}];
#pragma GCC unroll 64
    for (int v = 0; v < kVectors; ++v) {
      row[v] = Numbers::load(b + v / kParts * t.strip_stride + v % kParts * Numbers::kLanes);
    }
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      const Vector x = Numbers::set(a[r * t.row_step]);
#pragma GCC unroll 64
      for (int v = 0; v < kVectors; ++v) {
        sums[r][v] = Numbers::mul_add(x, row[v], sums[r][v]);
      }
    }
    a += t.depth_step;
    b += kColumns;
  }
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 64
    for (int v = 0; v < kVectors; ++v) {
      T* const to = t.c + r * t.c_stride + column(v);
      Vector sum = sums[r][v];
      if (t.onto == Onto::kSum) {
        sum = Numbers::add(Numbers::load(t.start + r * t.start_stride + column(v)), sum);
      }
      if (t.factors != nullptr) sum = Numbers::multiply(sum, Numbers::set(t.factors[r]));
      Numbers::store(sum, to);
    }
  }
}

/// Rows of a block with kStrips strips: as many as registers hold, and no more than keep the units
/// busy.
template <class Numbers, int kStrips, class T = typename Numbers::Number>
constexpr int most_rows() {
  constexpr int kParts = static_cast<int>(kStripColumns<T>) / Numbers::kLanes;
  constexpr int kFit = kRegisters / (kStrips * kParts);
  return kFit < 1 ? 1 : kFit > 8 ? 8 : kFit;
}

template <class Numbers, int kStrips, int kRows, class T = typename Numbers::Number>
HWY_INLINE void multiply_rows(int rows, const BlockTask<T>& t) {
  if constexpr (kRows == 1) {
    multiply_block<Numbers, 1, kStrips>(t);
  } else {
    if (rows == kRows) return multiply_block<Numbers, kRows, kStrips>(t);
    multiply_rows<Numbers, kStrips, kRows - 1>(rows, t);
  }
}

/// Rows whose elements of a are row_step apart: those of a tile, or all.
template <class T>
HWY_INLINE Index rows_of_tile(Index rows, const BlockTask<T>& t) {
  return t.tile_step > 0 && rows > kTileRows ? kTileRows : rows;
}

/// Brings the strips after those of a task into the second-level cache, a part with each block:
/// else the first block of each strip waits for memory. A prefetch past the end does nothing.
template <class T>
class NextStrips {
 public:
  /// For a task of so many blocks; a few of them could not hide the work of prefetching.
  HWY_INLINE NextStrips(const BlockTask<T>& t, Index strips, Index blocks)
      : at_(t.b + strips * t.strip_stride),
        lines_(blocks < 8 ? 0 : strips * t.depth),
        at_once_(lines_ / (blocks + 1) + 1) {}
  HWY_INLINE void prefetch_some() {
    const Index count = lines_ < at_once_ ? lines_ : at_once_;
    for (Index i = 0; i < count; ++i, at_ += kStripColumns<T>) __builtin_prefetch(at_, 0, 2);
    lines_ -= count;
  }

 private:
  const T* at_;
  Index lines_;
  Index at_once_;
};

/// All rows of kStrips strips, in blocks of nearly equal height.
template <class Numbers, int kStrips, class T = typename Numbers::Number>
HWY_NOINLINE void multiply_strips(Index rows, BlockTask<T> t) {
  constexpr Index kMost = most_rows<Numbers, kStrips>();
  NextStrips<T> next(t, kStrips, rows / kMost);
  for (const T* tile = t.a; rows > 0; tile += t.tile_step) {
    Index left = rows_of_tile(rows, t);
    rows -= left;
    t.a = tile;
    for (Index blocks = divide_up(left, kMost); blocks > 0; --blocks) {
      const Index count = divide_up(left, blocks);
      multiply_rows<Numbers, kStrips, static_cast<int>(kMost)>(static_cast<int>(count), t);
      next.prefetch_some();
      left -= count;
      t.a += count * t.row_step;
      t.c += count * t.c_stride;
      t.start += count * t.start_stride;
      if (t.factors != nullptr) t.factors += count;
    }
  }
}

/// Columns after the last whole strip take a way through memory of their own.
template <class Numbers, class T = typename Numbers::Number>
HWY_NOINLINE void multiply_edge(Index rows, Index columns, BlockTask<T> t) {
  constexpr Index kColumns = kStripColumns<T>;
  alignas(64) T edge[static_cast<std::size_t>(kTileRows * kColumns)] = {};
  T* to = t.c;
  const Index c_stride = t.c_stride;
  const T* from = t.start;
  const Index start_stride = t.start_stride;
  t.c_stride = t.start_stride = kColumns;
  const T* const a = t.a;
  for (Index first = 0; first < rows; first += kTileRows, to += kTileRows * c_stride) {
    const Index count = rows - first < kTileRows ? rows - first : kTileRows;
    for (Index i = 0; t.onto != Onto::kNothing && i < count; ++i, from += start_stride) {
      for (Index j = 0; j < columns; ++j) edge[i * kColumns + j] = from[j];
    }
    t.a = t.tile_step > 0 ? a + first / kTileRows * t.tile_step : a + first * t.row_step;
    t.c = edge;
    t.start = edge;
    multiply_strips<Numbers, 1>(count, t);
    for (Index i = 0; i < count; ++i) {
      for (Index j = 0; j < columns; ++j) to[i * c_stride + j] = edge[i * kColumns + j];
    }
    if (t.factors != nullptr) t.factors += count;
  }
}

template <class Numbers, class T = typename Numbers::Number>
HWY_INLINE void multiply_any(const LeftOperand<T>& a, Index depth, const Strips<const T>& b,
                             std::type_identity_t<const T*> factors, const MatrixView<T>& c,
                             Onto onto, std::type_identity_t<const T*> bias) {
  constexpr Index kColumns = kStripColumns<T>;
  constexpr int kParts = static_cast<int>(kColumns) / Numbers::kLanes;
  BlockTask<T> t{a.data, a.row_step, a.depth_step, a.tile_step, depth,   b.data, b.stride,
                 c.data, c.stride,   c.data,       c.stride,    factors, onto};
  if (onto == Onto::kBias) {
    t.start = bias;
    t.start_stride = 0;
    t.onto = Onto::kSum;
  }
  Index left = c.columns;
  // Columns of so many strips, once they are done.
  const auto done = [&](Index strips) {
    t.b += strips * b.stride;
    t.c += strips * kColumns;
    t.start += strips * kColumns;
    return strips * kColumns;
  };
  if constexpr (kRegisters >= 4 * 6 * kParts) {
    // Rows that fit two strips at once but not four: all of them while the strips come from memory.
    const bool two = c.rows > most_rows<Numbers, 4>() && c.rows <= most_rows<Numbers, 2>();
    for (; left >= 4 * kColumns && !two; left -= done(4)) multiply_strips<Numbers, 4>(c.rows, t);
    for (; left >= 2 * kColumns; left -= done(2)) multiply_strips<Numbers, 2>(c.rows, t);
  }
  for (; left >= kColumns; left -= done(1)) multiply_strips<Numbers, 1>(c.rows, t);
  if (left > 0) multiply_edge<Numbers>(c.rows, left, t);
}

}  // namespace HWY_NAMESPACE
}  // namespace masque::kernel
MASQUE_AFTER_PRODUCT();

#endif  // guard of this target
