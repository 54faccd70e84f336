// The elements of an npy put in order: row-major, little-endian.
#pragma once

#include <functional>
#include <optional>

#include "store/numpy/npy.hpp"
#include "store/violation.hpp"

namespace masque::store {

/// Gives the next out.size() bytes of a file or member.
using ByteSource = std::function<std::optional<Violation>(MutableBytes out)>;

/// Swaps the bytes of numbers: big-endian to little-endian. The two parts of a complex one stay in
/// order. `data` is of whole numbers.
void swap_bytes(DType dtype, MutableBytes data);

/// Whether the elements lie column by column where that makes a difference.
bool is_transposed(const NpyHeader& header);

/// out ← the elements that `source` gives as they lie after the header; out.size() is
/// header.data_bytes. Memory besides `out`: 1 MiB.
std::optional<Violation> read_npy_elements(const NpyHeader& header, const ByteSource& source,
                                           MutableBytes out);

}  // namespace masque::store
