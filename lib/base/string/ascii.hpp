// Letters A to Z, whatever the locale.
#pragma once

namespace masque {

/// Whether `c` is one of A to Z.
inline bool is_ascii_capital(char c) { return c >= 'A' && c <= 'Z'; }
/// Whether `c` is one of a to z.
inline bool is_ascii_small(char c) { return c >= 'a' && c <= 'z'; }
/// Returns the small letter if `c` is a capital, else `c`.
inline char ascii_small(char c) { return is_ascii_capital(c) ? static_cast<char>(c + 32) : c; }
/// Returns the capital if `c` is a small letter, else `c`.
inline char ascii_capital(char c) { return is_ascii_small(c) ? static_cast<char>(c - 32) : c; }

}  // namespace masque
