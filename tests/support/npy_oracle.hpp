// The reader of npy files against the naive one.
#pragma once

#include <string>
#include <string_view>

#include "store/numpy/array.hpp"
#include "store/numpy/npy.hpp"
#include "support/memory_file.hpp"
#include "support/naive_npy.hpp"

namespace masque::test {

inline std::string text_of(const store::Array& array) {
  return {reinterpret_cast<const char*>(array.data.data()), array.data.size()};
}

/// What is wrong with what the reader makes of a file; nothing if all is well.
inline std::string wrong_npy(std::string_view file) {
  const auto naive = naive_npy(file);
  const auto parsed = store::parse_npy_header(as_bytes(file), file.size());
  const auto read = store::read_npy(MemoryFile(file).open(), file.size());
  const auto* header = std::get_if<store::NpyHeader>(&parsed);
  const auto* array = std::get_if<store::Array>(&read);
  if ((header == nullptr) != (array == nullptr)) return "header and file disagree";
  if (header == nullptr) return naive ? "refused, but not by the naive reading" : "";
  if (!naive) return "accepted, but not by the naive reading";
  if (header->data_begin != naive->data_begin) return "data begin elsewhere";
  if (dtype_name(array->dtype) != naive->dtype) return "another type";
  if (array->shape != naive->shape) return "another shape";
  if (text_of(*array) != naive->data) return "other data";
  const bool is_rest = file.size() > header->data_begin + header->data_bytes;
  if (array->notes.size() != (is_rest ? 1 : 0)) return "no word about bytes after the data";
  const std::string again = store::write_npy_header(array->dtype, array->shape) + naive->data;
  const auto second = naive_npy(again);
  if (!second || second->shape != naive->shape || second->data != naive->data ||
      second->dtype != naive->dtype || second->data_begin % 64 != 0) {
    return "does not read back";
  }
  return "";
}

}  // namespace masque::test
