// Whole numbers as text, for streams of millions of them.
#pragma once

#include <cstddef>
#include <cstdint>

namespace masque {

/// Most characters of a 32-bit number.
inline constexpr std::size_t kDecimalChars = 11;

/// Writes a number to `out`, which has room for kDecimalChars; returns the end.
char* write_decimal(std::int32_t value, char* out);

}  // namespace masque
