// Two towers: a sentence read from both sides, each token predicted from what stands before and
// after it. Clark et al. 2020 (Electric), arXiv:2012.08561, section 3.
#pragma once

#include "tensor/matrix.hpp"

namespace masque::nn {

/// Row i of out (T, widths together) is row i − 1 of `forward` next to row i + 1 of `backward`;
/// rows before the first and after the last are 0. If row i of `forward` depends on tokens 0 … i
/// alone (mask `causal`) and row i of `backward` on tokens i … T − 1 (mask `reverse`), row i of
/// `out` depends on all tokens but i, at any depth. T is float, double or std::complex<double>.
template <class T>
void join_towers(MatrixView<const T> forward, MatrixView<const T> backward, MatrixView<T> out);

/// Adds to the gradients by `forward` and `backward`. T is float or double.
template <class T>
void join_towers_backward(MatrixView<const T> d_out, MatrixView<T> d_forward,
                          MatrixView<T> d_backward);

}  // namespace masque::nn
