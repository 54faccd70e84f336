// What must hold for whatever the readers of PyTorch files accept.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "store/torch/torch_state.hpp"
#include "support/memory_file.hpp"

namespace masque::test {

/// What is wrong with what the readers make of a file; nothing if all is well. Reads every tensor
/// that is not larger than 4 MiB.
inline std::string wrong_torch(std::string_view bytes) {
  constexpr std::uint64_t kMost = 4 << 20;
  const InputFile file = MemoryFile(bytes).open();
  const auto read = store::read_weights(file);
  if (const auto* violation = std::get_if<store::Violation>(&read)) {
    if (violation->rule.empty() || violation->message.empty()) return "a violation of no rule";
    return violation->file == file.path() ? "" : "a violation of no file";
  }
  std::map<std::string, const store::TensorInfo*> seen;
  for (const store::TensorInfo& tensor : std::get<store::FileContent>(read).tensors) {
    if (byte_count(tensor.dtype, tensor.shape) != tensor.bytes()) return "another size";
    if (!tensor.reader && (tensor.begin > tensor.end || tensor.end > bytes.size()))
      return "a tensor outside of the file";
    if (!seen.emplace(tensor.name, &tensor).second) return "two tensors of a name";
    if (tensor.bytes() > kMost) continue;
    std::vector<std::byte> data(tensor.bytes());
    store::read_tensor(file, tensor, 0, data);
    if (tensor.alias_of.empty()) continue;
    const auto twin = seen.find(tensor.alias_of);
    if (twin == seen.end()) return "an alias of nothing before it";
    std::vector<std::byte> same(twin->second->bytes());
    store::read_tensor(file, *twin->second, 0, same);
    if (same != data) return "an alias of something else";
  }
  return "";
}

/// The byte after the last element of a tensor, counted naively; with overflow it is large.
inline long double end_of(const store::PickleTensor& tensor) {
  long double last = 0;
  for (std::size_t i = 0; i < tensor.sizes.size(); ++i) {
    if (tensor.sizes[i] == 0) return 0;
    last +=
        static_cast<long double>(tensor.sizes[i] - 1) * static_cast<long double>(tensor.strides[i]);
  }
  const unsigned bits = dtype_bits(tensor.dtype);
  return static_cast<long double>(tensor.begin) + (last + 1) * (bits < 8 ? 1 : bits / 8);
}

/// What is wrong with what the machine makes of a pickle; nothing if all is well.
inline std::string wrong_pickle(std::string_view bytes) {
  for (const std::size_t items : {5U, 6U}) {
    const auto read = store::read_pickle(std::string(bytes), 0, items);
    const auto* pickle = std::get_if<store::Pickle>(&read);
    if (pickle == nullptr) {
      if (std::get<store::Violation>(read).rule.empty()) return "a violation of no rule";
      continue;
    }
    if (pickle->end > bytes.size() || pickle->top >= pickle->values.size()) return "an end outside";
    for (const store::PickleTensor& tensor : pickle->tensors) {
      if (tensor.sizes.size() != tensor.strides.size()) return "another number of strides";
      const auto bytes_there = static_cast<long double>(pickle->storages[tensor.storage].bytes());
      if (end_of(tensor) > bytes_there) return "a tensor beyond its storage";
    }
    store::TorchPlaces places;
    places.begin.assign(pickle->storages.size(), 0);
    const auto content = store::torch_content(*pickle, places);
    if (const auto* found = std::get_if<store::FileContent>(&content)) {
      for (const store::TensorInfo& tensor : found->tensors)
        if (byte_count(tensor.dtype, tensor.shape) != tensor.bytes()) return "another size";
    }
  }
  return "";
}

}  // namespace masque::test
