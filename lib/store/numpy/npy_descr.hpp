// How npy spells the types of elements.
#pragma once

#include <optional>
#include <string_view>

#include "store/violation.hpp"
#include "tensor/dtype.hpp"

namespace masque::store {

/// A type of elements as a file has them.
struct NpyType {
  DType dtype = DType::kF32;  ///< type of the elements
  bool big_endian = false;    ///< of elements of more than one byte
};

/// What the spelling `descr` means: an optional byte order (`<`, `>`, `=` or `|`) and b1, i1, i2,
/// i4, i8, u1, u2, u4, u8, f2, f4, f8 or c8. Others break a rule that names them: "object-array" (a
/// pickle), "unsupported-dtype" (text, dates, raw bytes, wider numbers) or "unknown-dtype".
Checked<NpyType> parse_npy_descr(std::string_view descr);

/// The spelling of `dtype` that NumPy writes (`<f4`), static text; nothing for types that it does
/// not know (BF16, F8 …).
std::optional<std::string_view> npy_descr(DType dtype);

}  // namespace masque::store
