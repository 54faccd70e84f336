// npy files: one array, which has no name there and is called "array" here.
#include <cstring>

#include "store/format.hpp"
#include "store/numpy/npy.hpp"
#include "store/numpy/unpacked_tensor.hpp"

namespace masque::store {

namespace {

constexpr std::string_view kMagic = "\x93NUMPY";

bool recognise(const InputFile& /*file*/, Bytes first) {
  return first.size() >= kMagic.size() &&
         std::memcmp(first.data(), kMagic.data(), kMagic.size()) == 0;
}

Checked<FileContent> read(const InputFile& file) {
  std::vector<std::byte> first(std::min(file.size(), kNpyPrefixBytes + NpyLimits{}.header_bytes));
  file.read(0, first);
  auto parsed = parse_npy_header(first, file.size());
  if (auto* violation = std::get_if<Violation>(&parsed)) return std::move(*violation);
  auto& header = std::get<NpyHeader>(parsed);
  FileContent content;
  content.data_begin = header.data_begin;
  content.notes = std::move(header.notes);
  content.tensors.push_back({.name = std::string(kNpyName),
                             .dtype = header.dtype,
                             .shape = header.shape,
                             .begin = header.data_begin,
                             .end = header.data_begin + header.data_bytes,
                             .reader = npy_reader(header)});
  return content;
}

/// The header says nothing about the elements' bytes.
std::vector<Patch> in_place(const PatchedFile& /*file*/) { return {}; }

const FileFormat kFormat{
    .name = "npy", .writer = "npy", .recognise = recognise, .read = read, .in_place = in_place};
const FormatRegistration kRegistration{kFormat};

}  // namespace

}  // namespace masque::store
