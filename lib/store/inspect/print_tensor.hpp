// A tensor's values as text or bytes, in bounded memory.
#pragma once

#include <functional>
#include <string_view>

#include "store/checkpoint.hpp"

namespace masque::store {

/// Rows [begin, end) of a tensor: slices of its first dimension; a scalar has one row.
struct RowRange {
  std::uint64_t begin = 0;  ///< first row, from 0
  std::uint64_t end = 0;    ///< one past the last row
};

/// The rows of `tensor` that `text` says: "3:7", "3:", ":7", "3" or "" (all). Throws UsageError
/// about the field "rows" if it is none of these, InputError if it goes beyond the tensor.
RowRange parse_row_range(std::string_view text, const TensorInfo& tensor);

/// How values are written.
enum class PrintForm {
  kTsv,   ///< one row a line, values separated by tabs; they read back to the same bits
  kJson,  ///< one row a line as a flat array; NaN and infinity are null
  kRaw,   ///< the bytes
};

/// Writes the `rows` of `tensor`, one of `checkpoint`, to `sink` piece by piece, as `form` says.
/// Memory: 64 KiB and their text. Throws InputError for packed types, except raw, and for rows that
/// begin or end inside a byte; Interrupted.
void print_tensor(const Checkpoint& checkpoint, const TensorInfo& tensor, RowRange rows,
                  PrintForm form, const std::function<void(std::string_view)>& sink);

}  // namespace masque::store
