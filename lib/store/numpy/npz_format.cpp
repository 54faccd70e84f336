// npz files: a zip of npy files, one tensor each. Only the directory and the headers are read here;
// the CRC of a member that lies in order is compared by none of the reads of its parts.
#include <algorithm>

#include "store/format.hpp"
#include "store/numpy/unpacked_tensor.hpp"
#include "store/zip/zip.hpp"

namespace masque::store {

namespace {

Checked<NpyHeader> read_header(const InputFile& file, const ZipMember& member) {
  const NpyLimits limits;
  std::vector<std::byte> first(std::min(member.bytes, kNpyPrefixBytes + limits.header_bytes));
  ZipStream stream(file, member);
  if (auto violation = stream.read(first)) return *std::move(violation);
  auto parsed = parse_npy_header(first, member.bytes, limits);
  if (const auto* header = std::get_if<NpyHeader>(&parsed)) {
    if (auto violation = check_npz_rest(*header, member.bytes)) return *std::move(violation);
  }
  return parsed;
}

Checked<FileContent> read(const InputFile& file) {
  auto directory = read_npz_directory(file);
  if (auto* violation = std::get_if<Violation>(&directory)) return std::move(*violation);
  auto& members = std::get<std::vector<ZipMember>>(directory);
  std::ranges::sort(members, {}, &ZipMember::header_begin);
  const auto last = std::make_shared<UnpackedTensor>();
  FileContent content;
  content.tensors.reserve(members.size());
  for (const ZipMember& member : members) {
    auto parsed = read_header(file, member);
    if (auto* violation = std::get_if<Violation>(&parsed))
      return in_member(std::move(*violation), member);
    const auto& header = std::get<NpyHeader>(parsed);
    const bool stored = member.method == ZipMethod::kStored;
    const std::uint64_t begin = member.data_begin + (stored ? header.data_begin : 0);
    content.tensors.push_back({.name = array_name(member),
                               .dtype = header.dtype,
                               .shape = header.shape,
                               .begin = begin,
                               .end = begin + header.data_bytes,
                               .reader = npz_reader(header, member, last)});
  }
  return content;
}

std::vector<Patch> in_place(const PatchedFile& file) { return zip_checksums(file, kNpzRules); }

const FileFormat kFormat{.name = "npz",
                         .writer = "npz",
                         .recognise = looks_like_npz,
                         .read = read,
                         .check_sums = check_zip_sums,
                         .in_place = in_place};
const FormatRegistration kRegistration{kFormat};

}  // namespace

}  // namespace masque::store
