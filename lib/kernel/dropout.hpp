// Dropout with counter-based randomness: which element falls is a function of the stream and its
// place.
#pragma once

#include "base/random/random.hpp"
#include "tensor/matrix.hpp"

namespace masque::kernel {

/// `x` ← x ⊙ keep / (1 − `probability`), in place; element (i, j) is set to 0 where word number
/// `first` + i · columns + j of `stream` is below probability · 2³². probability in [0, 1); 0 does
/// nothing. Srivastava et al. 2014.
template <class T>
void dropout_forward(double probability, const RandomStream& stream, std::uint64_t first,
                     MatrixView<T> x);
/// The gradient: `d_x` ← d_x ⊙ the factors that dropout_forward has for the same `probability`,
/// `stream` and `first`, in place.
template <class T>
void dropout_backward(double probability, const RandomStream& stream, std::uint64_t first,
                      MatrixView<T> d_x);

}  // namespace masque::kernel
