// Dropout with counter-based randomness: which element falls is a function of the stream and its
// place.
#pragma once

#include "base/random.hpp"
#include "tensor/matrix.hpp"

namespace masque::kernel {

/// x ← x ⊙ keep / (1 − probability), in place; element (i, j) uses number first + i · columns + j
/// of the stream. Srivastava 2014.
template <class T>
void dropout_forward(double probability, const RandomStream& stream, std::uint64_t first,
                     MatrixView<T> x);
/// The same factors on the gradient.
template <class T>
void dropout_backward(double probability, const RandomStream& stream, std::uint64_t first,
                      MatrixView<T> d_x);

}  // namespace masque::kernel
