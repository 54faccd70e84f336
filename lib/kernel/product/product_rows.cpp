#include "kernel/product/product_rows.hpp"

#include <algorithm>

#include "base/processor/vectorize.hpp"

namespace masque::kernel {
namespace {

constexpr Index kTile = 64;  // columns of y that stay in registers and the first-level cache

/// y[0 … n) += Σ_k x[k] · w[k][0 … n), in the order of k.
inline void add_row(const double* x, Index inputs, const double* w, Index w_stride, Index n,
                    double* y) {
  Index k = 0;
  for (; k + 4 <= inputs; k += 4) {
    const double x0 = x[k], x1 = x[k + 1], x2 = x[k + 2], x3 = x[k + 3];
    const double* w0 = w + k * w_stride;
    const double* w1 = w0 + w_stride;
    const double* w2 = w1 + w_stride;
    const double* w3 = w2 + w_stride;
    for (Index j = 0; j < n; ++j) {
      y[j] = (((y[j] + x0 * w0[j]) + x1 * w1[j]) + x2 * w2[j]) + x3 * w3[j];
    }
  }
  for (; k < inputs; ++k) {
    for (Index j = 0; j < n; ++j) y[j] += x[k] * w[k * w_stride + j];
  }
}

}  // namespace

void add_product(MatrixView<const double> x, MatrixView<const double> weight,
                 MatrixView<double> y) {
  for (Index first = 0; first < y.columns; first += kTile) {
    const Index count = std::min(kTile, y.columns - first);
    for (Index i = 0; i < x.rows; ++i) {
      vectorized<add_row>(x.row(i), x.columns, weight.data + first, weight.stride, count,
                          y.row(i) + first);
    }
  }
}

}  // namespace masque::kernel
