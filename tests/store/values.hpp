// Bytes and values of tensors, for the tests of this folder.
#pragma once

#include <cstring>
#include <string>
#include <vector>

#include "base/random/random.hpp"
#include "store/checkpoint.hpp"
#include "tensor/convert.hpp"

namespace masque::store {

/// The values one after another, as a file holds them.
template <class T>
std::string raw(const std::vector<T>& values) {
  std::string bytes(values.size() * sizeof(T), '\0');
  if (!values.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

/// The bytes of a tensor of a checkpoint.
inline std::string bytes_of(const Checkpoint& checkpoint, const std::string& name) {
  const TensorInfo& tensor = checkpoint.get(name);
  std::string bytes(tensor.bytes(), '\0');
  checkpoint.read(tensor, 0, std::as_writable_bytes(std::span(bytes)));
  return bytes;
}

/// Bytes as values; C64 as real and imaginary parts in turn.
inline std::vector<double> decoded(DType dtype, std::string_view bytes) {
  std::vector<double> values(bytes.size() / (dtype_bits(dtype) / 8) * components(dtype));
  to_double(dtype, std::as_bytes(std::span(bytes)), values);
  return values;
}

inline std::vector<double> values_of(const Checkpoint& checkpoint, const std::string& name) {
  return decoded(checkpoint.get(name).dtype, bytes_of(checkpoint, name));
}

/// `count` reproducible numbers, normal with this deviation.
inline std::vector<double> normal_values(std::uint64_t seed, std::size_t count, double deviation) {
  std::vector<double> values(count);
  RandomStream(seed, "test").normal(0, count, values.data());
  for (double& value : values) value *= deviation;
  return values;
}

/// `count` reproducible bytes.
inline std::string random_bytes(std::uint64_t seed, std::size_t count) {
  const RandomStream stream(seed, "bytes");
  std::string bytes(count, '\0');
  PhiloxBlock block = {};
  for (std::size_t i = 0; i < count; ++i) {
    if (i % 16 == 0) block = stream.block(i / 16);
    bytes[i] = static_cast<char>(block[i / 4 % 4] >> (8 * (i % 4)) & 0xFF);
  }
  return bytes;
}

}  // namespace masque::store
