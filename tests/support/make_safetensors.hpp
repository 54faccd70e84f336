// Small safetensors files made in a line, without the writer under test.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/json/json.hpp"

namespace masque::test {

struct SmallTensor {
  std::string name;
  std::string dtype;
  std::vector<std::uint64_t> shape;
  std::string bytes;
};

/// A file with these tensors in this order. `metadata` is a JSON object, or empty for none.
inline std::string make_safetensors(const std::vector<SmallTensor>& tensors,
                                    const std::string& metadata = {}) {
  std::string json = "{";
  std::string data;
  if (!metadata.empty()) json += "\"__metadata__\":" + metadata;
  for (const SmallTensor& tensor : tensors) {
    json +=
        fmt::format("{}{}:{{\"dtype\":\"{}\",\"shape\":[{}],\"data_offsets\":[{},{}]}}",
                    json.size() == 1 ? "" : ",", quote_json(tensor.name), tensor.dtype,
                    fmt::join(tensor.shape, ","), data.size(), data.size() + tensor.bytes.size());
    data += tensor.bytes;
  }
  json += "}";
  while (json.size() % 8 != 0) json += ' ';
  const std::uint64_t length = json.size();
  std::string file(8, '\0');
  std::memcpy(file.data(), &length, 8);
  return file + json + data;
}

/// A tensor of bytes.
inline SmallTensor bytes_tensor(const std::string& name, const std::string& bytes) {
  return {name, "U8", {bytes.size()}, bytes};
}

}  // namespace masque::test
