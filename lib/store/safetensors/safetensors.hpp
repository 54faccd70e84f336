// The safetensors header: parsing with every rule checked, and writing.
//
//   offset 0    u64, little-endian: N, the length of the header
//   offset 8    N bytes of UTF-8 JSON: {"__metadata__": {…}, "NAME": {"dtype": …, "shape": […],
//               "data_offsets": [BEGIN, END]}, …}; offsets count from byte 8 + N
//   8 + N …     the tensors' bytes, without holes, exactly up to the end of the file
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "store/tensor_info.hpp"
#include "store/violation.hpp"

namespace masque::store {

/// Limits on what a header may make us hold in memory.
struct SafetensorsLimits {
  std::uint64_t header_bytes = 100'000'000;  ///< as the reference reader
  std::uint64_t tensors = 1'000'000;         ///< how many
  std::uint64_t name_bytes = 65'536;         ///< of one tensor's name
  std::uint64_t rank = 64;                   ///< dimensions of a tensor
  std::uint64_t metadata_bytes = 16 << 20;   ///< of all keys and values
};

/// What a valid header says. Tensors are in data order.
struct SafetensorsHeader {
  std::vector<TensorInfo> tensors;   ///< begin and end are bytes of the file
  Metadata metadata;                 ///< `__metadata__`, in the order of the text
  bool has_metadata = false;         ///< whether `__metadata__` is there and not null
  std::uint64_t data_begin = 0;      ///< 8 + N
  std::uint64_t unknown_fields = 0;  ///< fields of entries that are not part of the format
  std::string unknown_field;         ///< the first of them, shortened
  bool leading_space = false;        ///< white space before "{"
};

/// Length in bytes of the header from the `first` 8 bytes of a file, checked against its size, the
/// `file_size` bytes, and against `limits`.
Checked<std::uint64_t> safetensors_header_length(Bytes first, std::uint64_t file_size,
                                                 const SafetensorsLimits& limits = {});

/// Parses and validates `json`, the N bytes of JSON of a file of `file_size` bytes, at least 8 + N
/// (a MASQUE_CHECK), within `limits`. Every rule has a name; the first one broken is returned. Cost
/// O(N log tensors).
Checked<SafetensorsHeader> parse_safetensors_header(std::string_view json, std::uint64_t file_size,
                                                    const SafetensorsLimits& limits = {});

/// The 8 bytes of length and the JSON for `tensors` in this order (their begin, end and file are
/// ignored), padded with spaces so that the data begins at a multiple of `alignment` bytes (a power
/// of two, at least 8). `metadata` is left out when empty. With sorted tensors the bytes equal
/// those of the reference writer. Throws InputError if they need more than 2^64 bytes.
std::string write_safetensors_header(const std::vector<TensorInfo>& tensors,
                                     const Metadata& metadata, std::uint64_t alignment = 8);

/// Whether `a` comes before `b` in the reference writer's order: higher dtype rank first, then
/// names by bytes.
bool safetensors_before(const TensorInfo& a, const TensorInfo& b);

}  // namespace masque::store
