// Whole numbers as text, for streams of millions of them.
#pragma once

#include <cstddef>
#include <cstdint>

namespace masque {

/// Most characters of a signed 32-bit number, the minus sign included.
inline constexpr std::size_t kDecimalChars = 11;

/// Writes `value` in decimal to `out`, which has room for kDecimalChars characters; returns the end
/// of what it wrote. Writes no NUL.
char* write_decimal(std::int32_t value, char* out);

}  // namespace masque
