// Compiled with -ffp-contract=fast, as tile_multiply.cpp.
#include <algorithm>
#include <cmath>
#include <limits>

#include "base/vectorize.hpp"
#include "nn/exp_vector.hpp"
#include "nn/tile.hpp"
#include "nn/vector.hpp"

namespace masque::nn::tile {

namespace {

using FloatVector = Vectors<float>::Aligned;

template <class T>
[[gnu::always_inline]] inline void hide_any(T* row, Index columns, std::uint64_t bits) {
  using Vector = typename Vectors<T>::Aligned;
  using Bits = typename Vectors<T>::Bits;
  using Word = typename Vectors<T>::Word;
  constexpr int kWidth = static_cast<int>(kLanes<T>);
  Bits lane;
  for (int i = 0; i < kWidth; ++i) lane[i] = static_cast<Word>(Word{1} << i);
  const Vector hidden = Vector{} - std::numeric_limits<T>::infinity();
  for (Index at = 0; at < columns; at += kWidth, bits >>= kWidth) {
    Vector& x = vector_at(row + at);
    const Bits here = lane & static_cast<Word>(bits & ((1U << kWidth) - 1));
    x = here != 0 ? x : hidden;
  }
}

MASQUE_VECTORIZE void hide_up(float* row, Index columns, std::uint64_t bits) {
  hide_any(row, columns, bits);
}
MASQUE_VECTORIZE void hide_up(double* row, Index columns, std::uint64_t bits) {
  hide_any(row, columns, bits);
}

/// Exchanges the halves of runs of 2 · kSize lanes.
template <int kSize>
struct OtherHalf {
  constexpr int operator()(int lane) const { return lane ^ kSize; }
};

template <class T, int kSize>
[[gnu::always_inline]] inline void exchange_halves(const typename Vectors<T>::Aligned& x,
                                                   typename Vectors<T>::Aligned& out) {
  shuffle<OtherHalf<kSize>>(x, x, out,
                            std::make_index_sequence<static_cast<std::size_t>(kLanes<T>)>());
}

template <class T, int kSize>
[[gnu::always_inline]] inline void largest_halves(typename Vectors<T>::Aligned& x) {
  typename Vectors<T>::Aligned other;
  exchange_halves<T, kSize>(x, other);
  x = x > other ? x : other;
  if constexpr (kSize > 1) largest_halves<T, kSize / 2>(x);
}

template <class T, int kSize>
[[gnu::always_inline]] inline void sum_halves(typename Vectors<T>::Aligned& x) {
  typename Vectors<T>::Aligned other;
  exchange_halves<T, kSize>(x, other);
  x += other;
  if constexpr (kSize > 1) sum_halves<T, kSize / 2>(x);
}

/// The largest element of a row, at least `least`.
template <class T>
[[gnu::always_inline]] inline T largest_of(const T* row, Index columns, T least) {
  using Vector = typename Vectors<T>::Aligned;
  Vector most = Vector{} + least;
  for (Index at = 0; at < columns; at += kLanes<T>) {
    const Vector& x = vector_at(row + at);
    most = x > most ? x : most;
  }
  largest_halves<T, static_cast<int>(kLanes<T>) / 2>(most);
  return most[0];
}

MASQUE_VECTORIZE float sum_up(const float* lanes) {
  FloatVector x = vector_at(lanes);
  sum_halves<float, 8>(x);
  return x[0];
}
MASQUE_VECTORIZE double sum_up(const double* lanes) {
  Vectors<double>::Aligned x = vector_at(lanes);
  sum_halves<double, 4>(x);
  return x[0];
}

template <bool kBounded>
[[gnu::always_inline]] inline void exp_row(float* row, Index columns, float shift, bool squares,
                                           float* sums) {
  FloatVector sum = vector_at(sums);
  for (Index at = 0; at < columns; at += kLanes<float>) {
    FloatVector x = vector_at(row + at) - shift;
    exp_vector<kBounded>(x);
    vector_at(row + at) = x;
    sum += squares ? x * x : x;
  }
  vector_at(sums) = sum;
}

template <bool kBounded>
[[gnu::always_inline]] inline void exp_row(double* row, Index columns, double shift, bool squares,
                                           double* sums) {
  for (Index at = 0; at < columns; ++at) {
    const double x = std::exp(row[at] - shift);
    row[at] = x;
    sums[at % kLanes<double>] += squares ? x * x : x;
  }
}

template <class T>
[[gnu::always_inline]] inline void exp_shifted_any(const MatrixView<T>& x, RowState<T>* states,
                                                   bool squares, const MatrixView<T>& sums) {
  constexpr T kNone = -std::numeric_limits<T>::infinity();
  for (Index r = 0; r < x.rows; ++r) {
    RowState<T>& state = states[r];
    const T before = state.largest;
    state.largest = largest_of<T>(x.row(r), x.columns, before);
    state.factor = 1;
    if (state.largest != before && before != kNone) {
      state.factor = std::exp(before - state.largest);
      vector_at(sums.row(r)) *= squares ? state.factor * state.factor : state.factor;
    }
  }
  for (Index r = 0; r < x.rows; ++r) {
    const T shift = states[r].largest == kNone ? T{} : states[r].largest;
    exp_row<true>(x.row(r), x.columns, shift, squares, sums.row(r));
  }
}

MASQUE_VECTORIZE void exp_shifted_up(const MatrixView<float>& x, RowState<float>* states,
                                     bool squares, const MatrixView<float>& sums) {
  exp_shifted_any(x, states, squares, sums);
}
void exp_shifted_up(const MatrixView<double>& x, RowState<double>* states, bool squares,
                    const MatrixView<double>& sums) {
  exp_shifted_any(x, states, squares, sums);
}

template <class T>
[[gnu::always_inline]] inline void exp_any(const MatrixView<T>& x) {
  alignas(64) T ignored[kLanes<T>] = {};
  for (Index r = 0; r < x.rows; ++r) exp_row<false>(x.row(r), x.columns, T{}, false, ignored);
}

MASQUE_VECTORIZE void exp_up(const MatrixView<float>& x) { exp_any(x); }
void exp_up(const MatrixView<double>& x) { exp_any(x); }

template <class T>
[[gnu::always_inline]] inline void squared_relu_any(const MatrixView<T>& rows, bool squares,
                                                    const MatrixView<T>& sums) {
  using Vector = typename Vectors<T>::Aligned;
  for (Index r = 0; r < rows.rows; ++r) {
    Vector sum = vector_at(sums.row(r));
    for (Index at = 0; at < rows.columns; at += kLanes<T>) {
      Vector x = vector_at(rows.row(r) + at);
      x = x < 0 ? Vector{} : x;
      x = x * x;
      vector_at(rows.row(r) + at) = x;
      sum += squares ? x * x : x;
    }
    vector_at(sums.row(r)) = sum;
  }
}

MASQUE_VECTORIZE void squared_relu_up(const MatrixView<float>& x, bool squares,
                                      const MatrixView<float>& sums) {
  squared_relu_any(x, squares, sums);
}
MASQUE_VECTORIZE void squared_relu_up(const MatrixView<double>& x, bool squares,
                                      const MatrixView<double>& sums) {
  squared_relu_any(x, squares, sums);
}

MASQUE_VECTORIZE void multiply_up(const float* from, Index count, float factor, float* to) {
  for (Index i = 0; i < count; ++i) to[i] = from[i] * factor;
}
MASQUE_VECTORIZE void multiply_up(const double* from, Index count, double factor, double* to) {
  for (Index i = 0; i < count; ++i) to[i] = from[i] * factor;
}
}  // namespace

template <class T>
void hide(T* row, Index columns, std::uint64_t bits) {
  hide_up(row, columns, bits);
}

template <class T>
void map_exp_shifted(MatrixView<T> x, std::span<RowState<T>> states, bool squares,
                     MatrixView<T> sums) {
  exp_shifted_up(x, states.data(), squares, sums);
}

template <class T>
void map_exp(MatrixView<T> x) {
  exp_up(x);
}

template <class T>
void map_squared_relu(MatrixView<T> x, bool squares, MatrixView<T> sums) {
  squared_relu_up(x, squares, sums);
}

template <class T>
T sum_lanes(const T* lanes) {
  return sum_up(lanes);
}

template <class T>
void multiply_row(std::span<const T> from, T factor, T* to) {
  multiply_up(from.data(), static_cast<Index>(from.size()), factor, to);
}

template void hide(float*, Index, std::uint64_t);
template void hide(double*, Index, std::uint64_t);
template void map_exp_shifted(MatrixView<float>, std::span<RowState<float>>, bool,
                              MatrixView<float>);
template void map_exp_shifted(MatrixView<double>, std::span<RowState<double>>, bool,
                              MatrixView<double>);
template void map_exp(MatrixView<float>);
template void map_exp(MatrixView<double>);
template void map_squared_relu(MatrixView<float>, bool, MatrixView<float>);
template void map_squared_relu(MatrixView<double>, bool, MatrixView<double>);
template float sum_lanes(const float*);
template double sum_lanes(const double*);
template void multiply_row(std::span<const float>, float, float*);
template void multiply_row(std::span<const double>, double, double*);

}  // namespace masque::nn::tile
