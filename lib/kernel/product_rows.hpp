// y += x W in loops along memory: the reference for any number, faster for double with the same
// bits.
#pragma once

#include "kernel/linear_reference.hpp"

namespace masque::kernel {

template <class T>
void add_product(MatrixView<const T> x, MatrixView<const T> weight, MatrixView<T> y) {
  reference::add_product(x, weight, y);
}
void add_product(MatrixView<const double> x, MatrixView<const double> weight, MatrixView<double> y);

}  // namespace masque::kernel
