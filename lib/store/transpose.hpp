// Matrices of elements of any width with rows and columns swapped.
#pragma once

#include <cstddef>

namespace masque::store {

/// Sets out[j][i] to in[i][j] for `in` [`rows`, `columns`] of elements of `width` bytes. Rows of
/// `in` follow each other; those of `out` begin `stride` bytes apart. The two must not overlap.
/// Cost: each cache line is read and written once, where `width` is 1, 2, 4, 8 or 16.
void transpose(const std::byte* in, std::size_t rows, std::size_t columns, std::size_t width,
               std::byte* out, std::size_t stride);

}  // namespace masque::store
