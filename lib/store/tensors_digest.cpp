#include "store/tensors_digest.hpp"

#include <algorithm>
#include <cstring>
#include <functional>
#include <memory>
#include <vector>

#include <fmt/format.h>

#include "base/digest/hash.hpp"
#include "base/thread/interrupt.hpp"
#include "base/thread/parallel.hpp"

namespace masque::store {

namespace {

/// A tensor, and its bytes from an offset on, a multiple of `step`.
struct DigestedTensor {
  const TensorInfo* info = nullptr;
  std::uint64_t bytes = 0;
  std::uint64_t step = 1 << 20;
  std::function<void(std::uint64_t offset, MutableBytes out)> read;
};

std::string digest_of_all(std::vector<DigestedTensor> tensors) {
  std::ranges::sort(tensors, {}, [](const DigestedTensor& t) { return t.info->name; });
  std::vector<std::string> digests(tensors.size());
  parallel_for(static_cast<Index>(tensors.size()), default_threads(), [&](Index i) {
    const DigestedTensor& tensor = tensors[static_cast<std::size_t>(i)];
    const std::unique_ptr<Hasher> hasher = make_xxh3();
    hasher->add(
        as_bytes(fmt::format("{}\n{}\n{}\n", tensor.info->name, dtype_name(tensor.info->dtype),
                             shape_text(tensor.info->shape))));
    std::vector<std::byte> bytes;
    for (std::uint64_t at = 0; at < tensor.bytes; at += bytes.size()) {
      throw_if_interrupted();
      bytes.resize(std::min(tensor.step, tensor.bytes - at));
      tensor.read(at, bytes);
      hasher->add(bytes);
    }
    digests[static_cast<std::size_t>(i)] = hasher->digest();
  });
  const std::unique_ptr<Hasher> all = make_xxh3();
  for (const std::string& digest : digests) all->add(as_bytes(digest));
  return all->digest();
}

}  // namespace

void read_source(const Source& source, std::uint64_t offset, MutableBytes out) {
  if (const auto* computed = std::get_if<Computed>(&source)) {
    computed->fill(offset, out);
  } else if (const auto* copied = std::get_if<CopyFrom>(&source)) {
    copied->file->read(copied->begin + offset, out);
  } else {
    std::memcpy(out.data(), std::get<Literal>(source).text.data() + offset, out.size());
  }
}

std::string tensors_digest(const OutputWeights& weights) {
  std::vector<DigestedTensor> tensors;
  for (const OutputTensor& tensor : weights.tensors) {
    DigestedTensor& one = tensors.emplace_back();
    one.info = &tensor.info;
    one.bytes = byte_count(tensor.info.dtype, tensor.info.shape).value_or(0);
    if (const auto* computed = std::get_if<Computed>(&tensor.source))
      one.step = computed->chunk_bytes;
    one.read = [&source = tensor.source](std::uint64_t offset, MutableBytes out) {
      read_source(source, offset, out);
    };
  }
  return digest_of_all(std::move(tensors));
}

std::string tensors_digest(const Checkpoint& checkpoint) {
  std::vector<DigestedTensor> tensors;
  for (const TensorInfo& tensor : checkpoint.tensors()) {
    DigestedTensor& one = tensors.emplace_back();
    one.info = &tensor;
    one.bytes = tensor.bytes();
    one.read = [&](std::uint64_t offset, MutableBytes out) {
      checkpoint.read(tensor, offset, out);
    };
  }
  return digest_of_all(std::move(tensors));
}

}  // namespace masque::store
