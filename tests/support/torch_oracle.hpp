// What must hold for whatever the readers of PyTorch files accept.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "store/format.hpp"
#include "support/memory_file.hpp"

namespace masque::test {

/// What is wrong with what the readers make of a file; nothing if all is well. Reads every tensor
/// that is not larger than 4 MiB.
inline std::string wrong_torch(std::string_view bytes) {
  constexpr std::uint64_t kMost = 4 << 20;
  const InputFile file = MemoryFile(bytes).open();
  const auto read = read_weights(file);
  if (const auto* violation = std::get_if<Violation>(&read)) {
    if (violation->rule.empty() || violation->message.empty()) return "a violation of no rule";
    return violation->file == file.path() ? "" : "a violation of no file";
  }
  std::map<std::string, const TensorInfo*> seen;
  for (const TensorInfo& tensor : std::get<FileContent>(read).tensors) {
    if (byte_count(tensor.dtype, tensor.shape) != tensor.bytes()) return "another size";
    if (!tensor.reader && (tensor.begin > tensor.end || tensor.end > bytes.size()))
      return "a tensor outside of the file";
    if (!seen.emplace(tensor.name, &tensor).second) return "two tensors of a name";
    if (tensor.bytes() > kMost) continue;
    std::vector<std::byte> data(tensor.bytes());
    read_tensor(file, tensor, 0, data);
    if (tensor.alias_of.empty()) continue;
    const auto twin = seen.find(tensor.alias_of);
    if (twin == seen.end()) return "an alias of nothing before it";
    std::vector<std::byte> same(twin->second->bytes());
    read_tensor(file, *twin->second, 0, same);
    if (same != data) return "an alias of something else";
  }
  return "";
}

}  // namespace masque::test
