// The elements of an npy put in order: row-major, little-endian.
#pragma once

#include <functional>
#include <optional>

#include "store/numpy/npy.hpp"
#include "store/violation.hpp"

namespace masque::store {

/// Fills `out` with the next out.size() bytes of a file or member; returns a broken rule.
using ByteSource = std::function<std::optional<Violation>(MutableBytes out)>;

/// Swaps the bytes of each number of the type `dtype` in `data`: big-endian to little-endian. The
/// two parts of a complex one stay in order. `data` is of whole elements.
void swap_bytes(DType dtype, MutableBytes data);

/// Whether the elements after `header` lie column by column where that makes a difference: two
/// dimensions or more.
bool is_transposed(const NpyHeader& header);

/// Fills `out` with the elements that `source` gives as they lie after `header`, row-major and
/// little-endian; out.size() is header.data_bytes (a MASQUE_CHECK). Returns what `source` returns
/// if it is a broken rule. Memory besides `out`: 1 MiB. Throws Interrupted.
std::optional<Violation> read_npy_elements(const NpyHeader& header, const ByteSource& source,
                                           MutableBytes out);

}  // namespace masque::store
