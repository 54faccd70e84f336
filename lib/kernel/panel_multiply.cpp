// Compiled with -ffp-contract=fast: a · b + c on vectors is one instruction where there is one.
#include "kernel/panel_multiply.hpp"

#include "base/vectorize.hpp"

namespace masque::kernel::panel {
namespace {

using Vector __attribute__((vector_size(64), may_alias)) = float;
using Anywhere __attribute__((vector_size(64), may_alias, aligned(4))) = float;

template <int kRowCount, int kVectors, bool kTiles>
[[gnu::always_inline]] inline void multiply_tile(const Tile& t) {
  Vector sums[std::size_t{kRowCount}][std::size_t{kVectors}];
#pragma GCC unroll 8
  for (int r = 0; r < kRowCount; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) sums[r][v] = Vector{};
  }
  const float* a = t.a;
  const float* b = t.b;
  for (Index k = 0; k < t.depth; ++k) {
    Vector row[std::size_t{kVectors}];
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) row[v] = *reinterpret_cast<const Vector*>(b + v * kWidth);
#pragma GCC unroll 8
    for (int r = 0; r < kRowCount; ++r) {
      const float x = a[kTiles ? r : r * t.a_stride];
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) sums[r][v] += x * row[v];
    }
    a += kTiles ? kRows : 1;
    b += kColumns;
  }
#pragma GCC unroll 8
  for (int r = 0; r < kRowCount; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      Anywhere* to =
          reinterpret_cast<Anywhere*>(t.c + r * t.c_stride + v * kWidth);  // auto drops alignment
      *to = t.add ? *to + sums[r][v] : sums[r][v];
    }
  }
}

template <int kVectors, bool kTiles>
[[gnu::always_inline]] inline void multiply_rows(Index rows, const Tile& t) {
  switch (rows) {
    case 1: multiply_tile<1, kVectors, kTiles>(t); break;
    case 2: multiply_tile<2, kVectors, kTiles>(t); break;
    case 3: multiply_tile<3, kVectors, kTiles>(t); break;
    case 4: multiply_tile<4, kVectors, kTiles>(t); break;
    case 5: multiply_tile<5, kVectors, kTiles>(t); break;
    default: multiply_tile<6, kVectors, kTiles>(t);
  }
}

MASQUE_VECTORIZE void four_vectors(Index rows, const Tile& t, bool tiles) {
  tiles ? multiply_rows<4, true>(rows, t) : multiply_rows<4, false>(rows, t);
}
MASQUE_VECTORIZE void two_vectors(Index rows, const Tile& t, bool tiles) {
  tiles ? multiply_rows<2, true>(rows, t) : multiply_rows<2, false>(rows, t);
}
MASQUE_VECTORIZE void one_vector(Index rows, const Tile& t, bool tiles) {
  tiles ? multiply_rows<1, true>(rows, t) : multiply_rows<1, false>(rows, t);
}

/// Vectors of a tile: 24 sums fill the registers of AVX-512, 12 halves those of AVX2.
Index most_vectors() {
#if defined(__x86_64__)
  static const Index kMost = __builtin_cpu_supports("avx512f") != 0 ? 4 : 1;
  return kMost;
#else
  return 1;
#endif
}

}  // namespace

void multiply(const Left& a, Index depth, const float* panel, MatrixView<float> c, bool add) {
  const Index most = most_vectors();
  for_tiles(a, depth, panel, c, add, most, [&](Index vectors, Index rows, const Tile& t) {
    switch (vectors) {
      case 4: four_vectors(rows, t, a.tiles); break;
      case 2: two_vectors(rows, t, a.tiles); break;
      default: one_vector(rows, t, a.tiles);
    }
  });
}

}  // namespace masque::kernel::panel
