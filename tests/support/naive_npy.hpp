// A second reading of npy, written for shortness and not for speed: what the reader must agree
// with.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace masque::test {

/// What an npy holds: the type as safetensors calls it, and the bytes row-major and little-endian.
struct NaiveNpy {
  std::string dtype;
  std::vector<std::uint64_t> shape;
  std::string data;
  std::uint64_t data_begin = 0;
};

/// Reads a whole file; nothing if it breaks a rule.
std::optional<NaiveNpy> naive_npy(std::string_view file);

/// CRC-32 of zip, bit by bit.
std::uint32_t naive_crc32(std::string_view bytes);

}  // namespace masque::test
