#include "store/tensor_info.hpp"

#include <algorithm>

namespace masque::store {

namespace {

auto position_of(Metadata& metadata, std::string_view key) {
  return std::find_if(metadata.begin(), metadata.end(),
                      [&](const auto& pair) { return pair.first == key; });
}

}  // namespace

std::uint64_t TensorInfo::row_elements() const {
  std::uint64_t product = 1;
  for (std::size_t i = 1; i < shape.size(); ++i) product *= shape[i];
  return product;
}

void read_tensor(const InputFile& file, const TensorInfo& tensor, std::uint64_t offset,
                 MutableBytes out) {
  if (tensor.reader) return tensor.reader->read(file, offset, out);
  file.read(tensor.begin + offset, out);
}

const std::string* find_metadata(const Metadata& metadata, std::string_view key) {
  for (const auto& [name, value] : metadata) {
    if (name == key) return &value;
  }
  return nullptr;
}

void set_metadata(Metadata& metadata, std::string_view key, std::string value) {
  const auto at = position_of(metadata, key);
  if (at != metadata.end()) {
    at->second = std::move(value);
    return;
  }
  const bool sorted = std::is_sorted(metadata.begin(), metadata.end());
  metadata.emplace_back(key, std::move(value));
  if (sorted) std::sort(metadata.begin(), metadata.end());
}

void erase_metadata(Metadata& metadata, std::string_view key) {
  const auto at = position_of(metadata, key);
  if (at != metadata.end()) metadata.erase(at);
}

}  // namespace masque::store
