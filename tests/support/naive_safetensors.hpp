// A second safetensors validator, written apart from lib/store and as plainly as possible.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace masque::test {

struct NaiveTensor {
  std::string name;
  std::string dtype;
  std::vector<std::uint64_t> shape;
  std::uint64_t begin = 0;  ///< in the file
  std::uint64_t end = 0;
};

/// The tensors of a whole file in data order, or nothing if any rule of the format is broken.
std::optional<std::vector<NaiveTensor>> naive_safetensors(std::string_view file);

}  // namespace masque::test
