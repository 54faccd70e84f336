// The definition of the products of training: every element one sum in order.
#pragma once

#include <span>

#include "kernel/linear_reference.hpp"

namespace masque::kernel::reference {

/// `d_weight` (out, in) += d_yᵀ x and `d_bias` += Σ_r d_y(r, ·) unless it is empty, for `x` (rows,
/// in) and `d_y` (rows, out).
template <class T>
void add_weight_gradient(MatrixView<const T> x, MatrixView<const T> d_y, MatrixView<T> d_weight,
                         std::span<T> d_bias) {
  for (Index r = 0; r < x.rows; ++r) {
    for (Index o = 0; o < d_y.columns; ++o) {
      const T factor = d_y.at(r, o);
      for (Index i = 0; i < x.columns; ++i) d_weight.at(o, i) += factor * x.at(r, i);
      if (!d_bias.empty()) d_bias[static_cast<std::size_t>(o)] += factor;
    }
  }
}

}  // namespace masque::kernel::reference
