// y += x W in loops along memory: the reference for any number, faster for double with the same
// bits.
#pragma once

#include "kernel/product/linear_reference.hpp"

namespace masque::kernel {

/// `y` (rows, out) += x W for `x` (rows, in) and `weight` (in, out). Strides of columns
/// are 1. y must not overlap x and weight. Each element is one sum over the inputs in
/// order, after what y holds.
template <class T>
void add_product(MatrixView<const T> x, MatrixView<const T> weight, MatrixView<T> y) {
  reference::add_product(x, weight, y);
}
void add_product(MatrixView<const double> x, MatrixView<const double> weight, MatrixView<double> y);

}  // namespace masque::kernel
