// Products of pairs of bfloat16. No plain loop becomes the instruction: it needs intrinsics.
#include "base/error.hpp"
#include "kernel/panel_multiply.hpp"

#if defined(__x86_64__)
#include <immintrin.h>
#define MASQUE_PAIRS __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512bf16")))
#endif

namespace masque::kernel::panel {

#if defined(__x86_64__)

namespace {

template <int kRowCount, int kVectors, bool kTiles>
MASQUE_PAIRS __attribute__((always_inline)) inline void multiply_tile(const Tile& t) {
  __m512 sums[std::size_t{kRowCount}][std::size_t{kVectors}];
#pragma GCC unroll 8
  for (int r = 0; r < kRowCount; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) sums[r][v] = _mm512_setzero_ps();
  }
  const float* a = t.a;
  const float* b = t.b;
  for (Index k = 0; k < t.depth; ++k) {
    __m512bh row[std::size_t{kVectors}];
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      row[v] = reinterpret_cast<__m512bh>(_mm512_load_ps(b + v * kWidth));
    }
#pragma GCC unroll 8
    for (int r = 0; r < kRowCount; ++r) {
      const auto x = reinterpret_cast<__m512bh>(_mm512_set1_ps(a[kTiles ? r : r * t.a_stride]));
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) sums[r][v] = _mm512_dpbf16_ps(sums[r][v], x, row[v]);
    }
    a += kTiles ? kRows : 1;
    b += kColumns;
  }
#pragma GCC unroll 8
  for (int r = 0; r < kRowCount; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      float* to = t.c + r * t.c_stride + v * kWidth;
      _mm512_storeu_ps(to, t.add ? _mm512_add_ps(_mm512_loadu_ps(to), sums[r][v]) : sums[r][v]);
    }
  }
}

template <int kVectors, bool kTiles>
MASQUE_PAIRS void multiply_rows(Index rows, const Tile& t) {
  switch (rows) {
    case 1: multiply_tile<1, kVectors, kTiles>(t); break;
    case 2: multiply_tile<2, kVectors, kTiles>(t); break;
    case 3: multiply_tile<3, kVectors, kTiles>(t); break;
    case 4: multiply_tile<4, kVectors, kTiles>(t); break;
    case 5: multiply_tile<5, kVectors, kTiles>(t); break;
    default: multiply_tile<6, kVectors, kTiles>(t);
  }
}

template <int kVectors>
void multiply_either(Index rows, const Tile& t, bool tiles) {
  tiles ? multiply_rows<kVectors, true>(rows, t) : multiply_rows<kVectors, false>(rows, t);
}

}  // namespace

bool has_pairs() {
  static const bool kHas =
      __builtin_cpu_supports("avx512f") != 0 && __builtin_cpu_supports("avx512bw") != 0 &&
      __builtin_cpu_supports("avx512vl") != 0 && __builtin_cpu_supports("avx512dq") != 0 &&
      __builtin_cpu_supports("avx512bf16") != 0;
  return kHas;
}

void multiply_pairs(const Left& a, Index depth, const float* panel, MatrixView<float> c, bool add) {
  MASQUE_CHECK(has_pairs());
  for_tiles(a, depth, panel, c, add, 4, [&](Index vectors, Index rows, const Tile& t) {
    switch (vectors) {
      case 4: multiply_either<4>(rows, t, a.tiles); break;
      case 2: multiply_either<2>(rows, t, a.tiles); break;
      default: multiply_either<1>(rows, t, a.tiles);
    }
  });
}

#else

bool has_pairs() { return false; }
void multiply_pairs(const Left& /*a*/, Index /*depth*/, const float* /*panel*/,
                    MatrixView<float> /*c*/, bool /*add*/) {
  MASQUE_CHECK(false);
}

#endif

}  // namespace masque::kernel::panel
