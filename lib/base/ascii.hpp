// Letters A to Z, whatever the locale.
#pragma once

namespace masque {

inline bool is_ascii_capital(char c) { return c >= 'A' && c <= 'Z'; }
inline bool is_ascii_small(char c) { return c >= 'a' && c <= 'z'; }
/// The small letter of a capital, and the capital of a small one; others stay.
inline char ascii_small(char c) { return is_ascii_capital(c) ? static_cast<char>(c + 32) : c; }
inline char ascii_capital(char c) { return is_ascii_small(c) ? static_cast<char>(c - 32) : c; }

}  // namespace masque
