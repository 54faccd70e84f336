// Compiled with -ffp-contract=fast, as tile_multiply.cpp.
#include <cmath>

#include "base/vectorize.hpp"
#include "nn/exp_vector.hpp"
#include "nn/tile.hpp"

namespace masque::nn::tile {

namespace {

/// e^x / (1 + e^x): exp_vector stops before infinity, and gives 0 for −∞.
[[gnu::always_inline]] inline void sigmoid(Vectors<float>::Aligned& x) {
  exp_vector<false>(x);
  x = x / (x + 1.0F);
}
[[gnu::always_inline]] inline void sigmoid(Vectors<double>::Aligned& x) {
  for (int lane = 0; lane < static_cast<int>(kLanes<double>); ++lane) {
    const double e = std::exp(x[lane] < 0 ? x[lane] : -x[lane]);
    x[lane] = (x[lane] < 0 ? e : 1) / (1 + e);
  }
}

template <class T>
[[gnu::always_inline]] inline void sigmoid_any(const MatrixView<T>& rows, bool squares,
                                               const MatrixView<T>& sums) {
  using Vector = typename Vectors<T>::Aligned;
  for (Index r = 0; r < rows.rows; ++r) {
    Vector sum = vector_at(sums.row(r));
    for (Index at = 0; at < rows.columns; at += kLanes<T>) {
      Vector x = vector_at(rows.row(r) + at);
      sigmoid(x);
      vector_at(rows.row(r) + at) = x;
      sum += squares ? x * x : x;
    }
    vector_at(sums.row(r)) = sum;
  }
}

MASQUE_VECTORIZE void sigmoid_up(const MatrixView<float>& x, bool squares,
                                 const MatrixView<float>& sums) {
  sigmoid_any(x, squares, sums);
}
void sigmoid_up(const MatrixView<double>& x, bool squares, const MatrixView<double>& sums) {
  sigmoid_any(x, squares, sums);
}

}  // namespace

template <class T>
void map_sigmoid(MatrixView<T> x, bool squares, MatrixView<T> sums) {
  sigmoid_up(x, squares, sums);
}

template void map_sigmoid(MatrixView<float>, bool, MatrixView<float>);
template void map_sigmoid(MatrixView<double>, bool, MatrixView<double>);

}  // namespace masque::nn::tile
