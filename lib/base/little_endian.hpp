// Numbers as files and streams have them: little-endian, at any byte.
#pragma once

#include <bit>
#include <cstring>
#include <string>

namespace masque {

static_assert(std::endian::native == std::endian::little, "files have numbers as memory has them");

/// Returns the T whose sizeof(T) bytes, little-endian, begin at `bytes`, at any alignment.
template <class T>
T load_number(const void* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof value);
  return value;
}

/// Appends the bytes of the numbers `values` to `out`, little-endian, each in the width of its
/// type.
template <class... T>
void append_number(std::string& out, T... values) {
  (out.append(reinterpret_cast<const char*>(&values), sizeof values), ...);
}

}  // namespace masque
