// Compiled with -ffp-contract=fast, as tile_multiply.cpp.
#include <algorithm>
#include <cmath>
#include <limits>

#include "base/vectorize.hpp"
#include "nn/tile.hpp"

namespace masque::nn::tile {

namespace {

// Vectors of the compiler. Never passed by value: how they are passed depends on the processor.
using FloatVector __attribute__((vector_size(64), aligned(4), may_alias)) = float;
using DoubleVector __attribute__((vector_size(64), aligned(8), may_alias)) = double;
using FloatBits __attribute__((vector_size(64), aligned(4), may_alias)) = std::int32_t;
using DoubleBits __attribute__((vector_size(64), aligned(8), may_alias)) = std::int64_t;

template <class T, class Vector, class Bits, class Word>
[[gnu::always_inline]] inline void hide_any(T* row, Index columns, std::uint64_t bits) {
  constexpr int kWidth = static_cast<int>(kLanes<T>);
  Bits lane;
  for (int i = 0; i < kWidth; ++i) lane[i] = static_cast<Word>(Word{1} << i);
  const Vector hidden = Vector{} - std::numeric_limits<T>::infinity();
  for (Index at = 0; at < columns; at += kWidth, bits >>= kWidth) {
    auto* x = reinterpret_cast<Vector*>(row + at);
    const Bits here = lane & static_cast<Word>(bits & ((1U << kWidth) - 1));
    *x = here != 0 ? *x : hidden;
  }
}

MASQUE_VECTORIZE void hide_up(float* row, Index columns, std::uint64_t bits) {
  hide_any<float, FloatVector, FloatBits, std::int32_t>(row, columns, bits);
}
MASQUE_VECTORIZE void hide_up(double* row, Index columns, std::uint64_t bits) {
  hide_any<double, DoubleVector, DoubleBits, std::int64_t>(row, columns, bits);
}

/// The largest element per lane into `lanes`, which holds a start.
template <class Vector, class T>
[[gnu::always_inline]] inline void lane_max(const T* row, Index columns, T* lanes) {
  Vector most = *reinterpret_cast<const Vector*>(lanes);
  for (Index at = 0; at < columns; at += kLanes<T>) {
    const Vector x = *reinterpret_cast<const Vector*>(row + at);
    most = x > most ? x : most;
  }
  *reinterpret_cast<Vector*>(lanes) = most;
}

MASQUE_VECTORIZE void max_up(const float* row, Index columns, float* lanes) {
  lane_max<FloatVector>(row, columns, lanes);
}
MASQUE_VECTORIZE void max_up(const double* row, Index columns, double* lanes) {
  lane_max<DoubleVector>(row, columns, lanes);
}

/// e^(x − shift) = 2^(n + f), n whole and |f| ≤ 1/2: a polynomial times a number made of bits.
/// Below 2^−126 it is 0; above 2^127 it stays there.
[[gnu::always_inline]] inline void exp_vector(FloatVector& x, float shift) {
  constexpr float kLog2E = 1.44269504088896341F;
  // Adding it leaves n + 127 in the low bits.
  constexpr float kRound = 12582912.0F + 127;
  FloatVector y = (x - shift) * kLog2E;
  y = y < -127.0F ? FloatVector{} - 127.0F : y;
  y = y > 127.0F ? FloatVector{} + 127.0F : y;
  const FloatVector rounded = y + kRound;
  const FloatVector f = y - (rounded - kRound);
  FloatVector p = f * 0x1.41fbb8p-13F + 0x1.5f3e54p-10F;
  p = p * f + 0x1.3b2d4cp-7F;
  p = p * f + 0x1.c6aee8p-5F;
  p = p * f + 0x1.ebfbdcp-3F;
  p = p * f + 0x1.62e430p-1F;
  p = p * f + 1.0F;
  const FloatBits bits = reinterpret_cast<const FloatBits&>(rounded) << 23;
  x = p * reinterpret_cast<const FloatVector&>(bits);
}

MASQUE_VECTORIZE void exp_up(float* row, Index columns, float shift, bool squares, float* sums) {
  FloatVector sum = *reinterpret_cast<const FloatVector*>(sums);
  for (Index at = 0; at < columns; at += kLanes<float>) {
    FloatVector x = *reinterpret_cast<const FloatVector*>(row + at);
    exp_vector(x, shift);
    *reinterpret_cast<FloatVector*>(row + at) = x;
    sum += squares ? x * x : x;
  }
  *reinterpret_cast<FloatVector*>(sums) = sum;
}

void exp_up(double* row, Index columns, double shift, bool squares, double* sums) {
  for (Index at = 0; at < columns; ++at) {
    const double x = std::exp(row[at] - shift);
    row[at] = x;
    sums[at % kLanes<double>] += squares ? x * x : x;
  }
}

template <class Vector, class T>
[[gnu::always_inline]] inline void squared_relu_any(T* row, Index columns, bool squares, T* sums) {
  Vector sum = *reinterpret_cast<const Vector*>(sums);
  for (Index at = 0; at < columns; at += kLanes<T>) {
    Vector x = *reinterpret_cast<const Vector*>(row + at);
    x = x < 0 ? Vector{} : x;
    x = x * x;
    *reinterpret_cast<Vector*>(row + at) = x;
    sum += squares ? x * x : x;
  }
  *reinterpret_cast<Vector*>(sums) = sum;
}

MASQUE_VECTORIZE void squared_relu_up(float* row, Index columns, bool squares, float* sums) {
  squared_relu_any<FloatVector>(row, columns, squares, sums);
}
MASQUE_VECTORIZE void squared_relu_up(double* row, Index columns, bool squares, double* sums) {
  squared_relu_any<DoubleVector>(row, columns, squares, sums);
}

template <class Vector, class T>
[[gnu::always_inline]] inline void multiply_any(T* row, Index columns, T factor) {
  for (Index at = 0; at < columns; at += kLanes<T>) {
    *reinterpret_cast<Vector*>(row + at) *= factor;
  }
}

MASQUE_VECTORIZE void multiply_up(float* row, Index columns, float factor) {
  multiply_any<FloatVector>(row, columns, factor);
}
MASQUE_VECTORIZE void multiply_up(double* row, Index columns, double factor) {
  multiply_any<DoubleVector>(row, columns, factor);
}

template <class T>
Index length(std::span<T> row) {
  return static_cast<Index>(row.size());
}

}  // namespace

template <class T>
void hide(T* row, Index columns, std::uint64_t bits) {
  hide_up(row, columns, bits);
}

template <class T>
T row_max(std::span<const T> row, T least) {
  alignas(64) T lanes[kLanes<T>];
  std::fill_n(lanes, kLanes<T>, least);
  max_up(row.data(), length(row), lanes);
  return *std::max_element(lanes, lanes + kLanes<T>);
}

template <class T>
void map_exp(std::span<T> row, T shift, bool squares, T* sums) {
  exp_up(row.data(), length(row), shift, squares, sums);
}

template <class T>
void map_squared_relu(std::span<T> row, bool squares, T* sums) {
  squared_relu_up(row.data(), length(row), squares, sums);
}

template <class T>
void multiply_row(std::span<T> row, T factor) {
  multiply_up(row.data(), length(row), factor);
}

template void hide(float*, Index, std::uint64_t);
template void hide(double*, Index, std::uint64_t);
template float row_max(std::span<const float>, float);
template double row_max(std::span<const double>, double);
template void map_exp(std::span<float>, float, bool, float*);
template void map_exp(std::span<double>, double, bool, double*);
template void map_squared_relu(std::span<float>, bool, float*);
template void map_squared_relu(std::span<double>, bool, double*);
template void multiply_row(std::span<float>, float);
template void multiply_row(std::span<double>, double);

}  // namespace masque::nn::tile
