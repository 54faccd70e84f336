// What must hold for whatever the readers of TensorFlow's indexes accept.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "store/tensorflow/bundle.hpp"
#include "support/memory_file.hpp"

namespace masque::test {

/// Data files with bytes that tell where they are.
inline std::vector<InputFile> bundle_data(std::uint64_t shards, std::uint64_t bytes) {
  std::vector<InputFile> files;
  for (std::uint64_t i = 0; i < shards; ++i) {
    std::string data(bytes, '\0');
    for (std::size_t at = 0; at < data.size(); ++at) data[at] = static_cast<char>(at * 7 + i);
    files.push_back(MemoryFile(data).open());
  }
  return files;
}

/// What is wrong with what the readers make of an index; nothing if all is well. Reads every tensor
/// of data files that are as large as the index wants them, up to 64 KiB.
inline std::string wrong_bundle(std::string_view bytes, store::TableSums sums) {
  constexpr std::uint64_t kMost = 64 << 10;
  const auto parsed = store::parse_bundle_index(std::string(bytes), sums);
  if (const auto* violation = std::get_if<store::Violation>(&parsed)) {
    if (violation->rule.empty() || violation->message.empty()) return "a violation of no rule";
    return violation->offset <= bytes.size() ? "" : "a violation outside of the file";
  }
  const auto& index = std::get<store::BundleIndex>(parsed);
  std::uint64_t wanted = 0;
  for (std::size_t i = 0; i < index.entries.size(); ++i) {
    const store::BundleEntry& entry = index.entries[i];
    if (i > 0 && entry.name <= index.entries[i - 1].name) return "names that do not rise";
    if (entry.size <= kMost && entry.offset <= kMost - entry.size)
      wanted = std::max(wanted, entry.offset + entry.size);
  }
  if (index.shards > 16) return "";
  const auto files =
      std::make_shared<const std::vector<InputFile>>(bundle_data(index.shards, wanted));
  const std::vector<std::uint64_t> sizes(index.shards, wanted);
  const auto placed = store::place_bundle(index, sizes, files);
  const auto* contents = std::get_if<std::vector<store::FileContent>>(&placed);
  if (contents == nullptr) return std::get<store::Violation>(placed).rule.empty() ? "no rule" : "";
  for (std::size_t shard = 0; shard < contents->size(); ++shard) {
    const store::FileContent& content = (*contents)[shard];
    for (const store::TensorInfo& tensor : content.tensors) {
      if (byte_count(tensor.dtype, tensor.shape) != tensor.bytes()) return "another size";
      if (!tensor.reader && (tensor.begin > tensor.end || tensor.end > wanted))
        return "a tensor outside of its file";
      std::vector<std::byte> data(tensor.bytes());
      store::read_tensor((*files)[shard], tensor, 0, data);
    }
    for (const store::OpaqueTensor& tensor : content.opaque) {
      if (tensor.type.empty() || tensor.begin > tensor.end || tensor.end > wanted)
        return "an opaque tensor outside of its file";
    }
    static_cast<void>(store::check_sums((*files)[shard], content));
  }
  return "";
}

}  // namespace masque::test
