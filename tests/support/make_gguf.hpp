// GGUF files written piece by piece, right and wrong ones.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace masque::test {

/// The bytes of a number, little-endian.
template <class Number>
std::string le(Number number) {
  std::string bytes(sizeof(Number), '\0');
  std::memcpy(bytes.data(), &number, sizeof(Number));
  return bytes;
}

inline std::string u32(std::uint32_t number) { return le(number); }
inline std::string u64(std::uint64_t number) { return le(number); }

/// A length and a text.
inline std::string gguf_text(std::string_view text) { return u64(text.size()) + std::string(text); }

/// A key, its type and its value.
inline std::string gguf_value(std::string_view key, std::uint32_t type, const std::string& value) {
  return gguf_text(key) + u32(type) + value;
}

/// An array of elements whose bytes are given.
inline std::string gguf_array(std::string_view key, std::uint32_t element, std::uint64_t count,
                              const std::string& elements) {
  return gguf_value(key, 9, u32(element) + u64(count) + elements);
}

/// What is said about a tensor; `sizes` as files have them, the fastest first.
inline std::string gguf_tensor(std::string_view name, const std::vector<std::uint64_t>& sizes,
                               std::uint32_t type, std::uint64_t offset) {
  std::string out = gguf_text(name) + u32(static_cast<std::uint32_t>(sizes.size()));
  for (const std::uint64_t size : sizes) out += u64(size);
  return out + u32(type) + u64(offset);
}

/// A file: its header, zeros up to the alignment, data.
inline std::string make_gguf(const std::vector<std::string>& metadata,
                             const std::vector<std::string>& tensors, const std::string& data,
                             std::size_t alignment = 32, std::uint32_t version = 3) {
  std::string out = "GGUF" + u32(version) + u64(tensors.size()) + u64(metadata.size());
  for (const std::string& value : metadata) out += value;
  for (const std::string& tensor : tensors) out += tensor;
  out.append((alignment - out.size() % alignment) % alignment, '\0');
  return out + data;
}

}  // namespace masque::test
