// npz files: a zip of npy files, stored; the bytes that numpy.savez writes. The CRC of a member
// stands in front of its data, so that the headers are written again once they are known.
#include <set>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "store/numpy/npy.hpp"
#include "store/weights_writer.hpp"
#include "store/zip/zip.hpp"

namespace masque::store {

namespace {

constexpr std::string_view kSuffix = ".npy";

bool holds(DType dtype) { return npy_descr(dtype).has_value(); }

void check_names(const OutputWeights& weights, const std::string& path) {
  std::set<std::string_view> names;
  for (const OutputTensor& tensor : weights.tensors) {
    const std::string& name = tensor.info.name;
    if (!is_plain_path(name) || name.size() > kMaxZipName - kSuffix.size()) {
      throw InputError(path, fmt::format("an array called '{}', expected a plain name",
                                         escape(name.substr(0, 100))));
    }
    if (!names.insert(name).second)
      throw InputError(path, fmt::format("two arrays called '{}'", escape(name)));
  }
}

FilePlan plan(const OutputWeights& weights, const std::string& path) {
  check_names(weights, path);
  FilePlan plan;
  std::vector<ZipEntry> entries;
  entries.reserve(weights.tensors.size());
  std::uint64_t at = 0;
  for (const auto& [info, source] : weights.tensors) {
    std::string header = npy_header_for(path, info.dtype, info.shape);
    const std::uint64_t bytes = npy_data_bytes(path, info.dtype, info.shape);
    const ZipEntry& entry = entries.emplace_back(
        ZipEntry{info.name + std::string(kSuffix), 0, place_after(header.size(), bytes, path), at});
    std::string before = write_zip_local_header(entry);
    const int sum = static_cast<int>(plan.sums++);
    at = place_after(at, place_after(before.size(), entry.bytes, path), path);
    const std::uint64_t before_size = before.size();
    const std::uint64_t header_size = header.size();
    plan.parts.push_back({before_size, Literal{std::move(before)}});
    plan.parts.push_back({header_size, Literal{std::move(header)}, sum});
    plan.parts.push_back({bytes, source, sum});
  }
  std::string directory = write_zip_directory(entries, at);
  const std::uint64_t directory_size = directory.size();
  plan.parts.push_back({directory_size, Literal{std::move(directory)}});
  plan.late = [entries = std::move(entries), at](std::span<const std::uint32_t> sums) mutable {
    std::vector<LatePart> late;
    late.reserve(entries.size() + 1);
    for (std::size_t i = 0; i < entries.size(); ++i) {
      entries[i].crc = sums[i];
      late.push_back({entries[i].header_begin, write_zip_local_header(entries[i])});
    }
    late.push_back({at, write_zip_directory(entries, at)});
    return late;
  };
  return plan;
}

const WeightsWriter kWriter{.name = "npz",
                            .extension = ".npz",
                            .single = "model.npz",
                            .shard = "",
                            .has_metadata = false,
                            .holds = holds,
                            .plan = plan};
const WriterRegistration kRegistration{kWriter};

}  // namespace

}  // namespace masque::store
