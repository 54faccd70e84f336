// The reader of npz files against what their directory says and the naive reading of npy.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "store/format.hpp"
#include "store/zip/zip.hpp"
#include "support/npy_oracle.hpp"

namespace masque::test {

/// Every member lies inside the file, before the directory, and none inside another.
inline std::string wrong_places(const std::vector<store::ZipMember>& members, std::uint64_t size) {
  std::vector<std::pair<std::uint64_t, std::uint64_t>> ranges;
  for (const store::ZipMember& member : members) {
    if (!store::is_plain_path(member.name)) return "a name that is no plain path";
    if (member.data_begin < member.header_begin + 30 + member.name.size()) return "data too early";
    if (member.packed_bytes > size || member.data_begin > size - member.packed_bytes)
      return "data beyond the file";
    if (member.end < member.data_begin + member.packed_bytes) return "an end inside the data";
    ranges.emplace_back(member.header_begin, member.end);
  }
  std::sort(ranges.begin(), ranges.end());
  for (std::size_t i = 1; i < ranges.size(); ++i) {
    if (ranges[i].first < ranges[i - 1].second) return "members overlap";
  }
  if (!ranges.empty() && (ranges[0].first != 0 || ranges.back().second + 68 > size)) return "edges";
  return "";
}

/// What is wrong with a file as a checkpoint, given what it is as arrays: each array must be a
/// tensor. A file refused as arrays may be a checkpoint of what reads without a complaint.
inline std::string wrong_weights(const InputFile& input, const std::vector<store::Array>* arrays) {
  const auto read = store::read_weights(input);
  const auto* content = std::get_if<store::FileContent>(&read);
  if (content == nullptr) return arrays == nullptr ? "" : "arrays, but no checkpoint";
  if (arrays != nullptr && content->tensors.size() != arrays->size()) return "more or less tensors";
  for (const store::TensorInfo& tensor : content->tensors) {
    if (tensor.bytes() > (1 << 20)) continue;
    std::vector<std::byte> bytes(tensor.bytes());
    try {
      store::read_tensor(input, tensor, 0, bytes);
    } catch (const InputError&) {
      if (arrays != nullptr) return "a tensor that cannot be read";
      continue;
    }
    if (arrays == nullptr) continue;
    const auto same = [&](const store::Array& array) {
      return (array.name.empty() || array.name == tensor.name) && array.dtype == tensor.dtype &&
             array.shape == tensor.shape && array.data == bytes;
    };
    if (std::none_of(arrays->begin(), arrays->end(), same)) return "a tensor that is no array";
  }
  return "";
}

/// What is wrong with what the reader makes of a file; nothing if all is well.
inline std::string wrong_npz(std::string_view file) {
  constexpr std::uint64_t kMost = 1 << 20;
  const InputFile input = MemoryFile(file).open();
  const auto read = store::read_arrays_checked(input, kMost);
  const auto directory = store::read_zip_directory(input, {.deflate = true, .ignore_case = false});
  const auto* members = std::get_if<std::vector<store::ZipMember>>(&directory);
  if (members != nullptr) {
    const std::string wrong = wrong_places(*members, file.size());
    if (!wrong.empty()) return wrong;
  }
  const auto* arrays = std::get_if<std::vector<store::Array>>(&read);
  if (arrays != nullptr || file.starts_with("\x93NUMPY") || file.starts_with("PK")) {
    const std::string wrong = wrong_weights(input, arrays);
    if (!wrong.empty()) return wrong;
  }
  if (arrays == nullptr) {
    return std::get<store::Violation>(read).file == input.path() ? "" : "a violation of no file";
  }
  if (file.starts_with("\x93NUMPY")) return "";
  if (members == nullptr || members->size() != arrays->size()) return "another number of arrays";
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < arrays->size(); ++i) {
    const store::Array& array = (*arrays)[i];
    const store::ZipMember& member = (*members)[i];
    sum += array.data.size();
    if (array.name + ".npy" != member.name) return "another name";
    if (byte_count(array.dtype, array.shape) != array.data.size()) return "another size";
    if (member.method != store::ZipMethod::kStored) continue;
    const std::string_view npy = file.substr(member.data_begin, member.bytes);
    const auto naive = naive_npy(npy);
    if (naive_crc32(npy) != member.crc || !naive || naive->data != text_of(array)) {
      return "other data";
    }
  }
  return sum <= kMost ? "" : "more bytes than allowed";
}

}  // namespace masque::test
