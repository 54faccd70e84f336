#include "store/numpy/array.hpp"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/string/edit_distance.hpp"
#include "store/checkpoint_writer.hpp"
#include "store/numpy/npy.hpp"
#include "store/numpy/npz.hpp"

namespace masque::store {

namespace {

/// Reads an npy of `size` bytes; `exact` refuses bytes after the data. Byte offsets in a
/// violation count from its first byte.
Checked<Array> read_from(const ByteSource& source, std::uint64_t size, std::uint64_t max_bytes,
                         bool exact, const ShapeCheck& check = {}) {
  const NpyLimits limits;
  std::vector<std::byte> first(std::min(size, kNpyPrefixBytes + limits.header_bytes));
  if (auto violation = source(first)) return *std::move(violation);
  auto parsed = parse_npy_header(first, size, limits);
  if (auto* violation = std::get_if<Violation>(&parsed)) return std::move(*violation);
  NpyHeader& header = std::get<NpyHeader>(parsed);
  if (check) check(header.dtype, header.shape);
  if (header.data_bytes > max_bytes) {
    return Violation{
        "limit-bytes",
        fmt::format("{} {} has {} bytes, expected at most {}", dtype_name(header.dtype),
                    shape_text(header.shape), header.data_bytes, max_bytes),
        "", header.data_begin};
  }
  if (exact) {
    if (auto violation = check_npz_rest(header, size)) return *std::move(violation);
  }
  Array array{"", header.dtype, header.shape, {}, std::move(header.notes)};
  array.data.resize(header.data_bytes);
  // What came with the header, then piece by piece.
  Bytes early = Bytes(first).subspan(header.data_begin);
  const auto elements = [&](MutableBytes out) {
    const Bytes here = early.first(std::min(early.size(), out.size()));
    std::copy(here.begin(), here.end(), out.begin());
    early = early.subspan(here.size());
    return source(out.subspan(here.size()));
  };
  if (auto violation = read_npy_elements(header, elements, array.data)) {
    return *std::move(violation);
  }
  return array;
}

Checked<Array> read_member(const InputFile& file, const ZipMember& member, std::uint64_t max_bytes,
                           const ShapeCheck& check = {}) {
  ZipStream stream(file, member);
  // Exactly what the npy announces is unpacked, so that max_bytes bounds the time, too.
  auto array = read_from([&](MutableBytes out) { return stream.read(out); }, member.bytes,
                         max_bytes, true, check);
  if (auto* violation = std::get_if<Violation>(&array)) {
    return in_member(std::move(*violation), member);
  }
  if (auto violation = stream.finish()) return *std::move(violation);
  std::get<Array>(array).name = array_name(member);
  return array;
}

template <class T>
Checked<T> in_file(Checked<T> checked, const InputFile& file) {
  if (auto* violation = std::get_if<Violation>(&checked)) violation->file = file.path();
  return checked;
}

/// The first bytes, by which a file is recognised.
std::vector<std::byte> first_bytes(const InputFile& file) {
  std::vector<std::byte> first(std::min<std::uint64_t>(file.size(), kNpyPrefixBytes));
  file.read(0, first);
  return first;
}

Checked<std::vector<Array>> read_npz(const InputFile& file, std::uint64_t max_bytes) {
  auto directory = read_npz_directory(file);
  if (auto* violation = std::get_if<Violation>(&directory)) return std::move(*violation);
  std::vector<Array> arrays;
  for (const ZipMember& member : std::get<std::vector<ZipMember>>(directory)) {
    auto array = read_member(file, member, max_bytes);
    if (auto* violation = std::get_if<Violation>(&array)) return std::move(*violation);
    max_bytes -= std::get<Array>(array).data.size();
    arrays.push_back(std::get<Array>(std::move(array)));
  }
  return arrays;
}

}  // namespace

namespace {

Checked<Array> read_checked_npy(const InputFile& file, std::uint64_t max_bytes,
                                const ShapeCheck& check) {
  std::uint64_t at = 0;
  const auto source = [&](MutableBytes out) -> std::optional<Violation> {
    file.read(at, out);
    at += out.size();
    return std::nullopt;
  };
  return in_file(read_from(source, file.size(), max_bytes, false, check), file);
}

}  // namespace

Checked<Array> read_npy(const InputFile& file, std::uint64_t max_bytes) {
  return read_checked_npy(file, max_bytes, {});
}

Checked<std::vector<Array>> read_arrays_checked(const InputFile& file, std::uint64_t max_bytes) {
  if (is_zip(first_bytes(file))) return in_file(read_npz(file, max_bytes), file);
  auto array = read_npy(file, max_bytes);
  if (auto* violation = std::get_if<Violation>(&array)) return std::move(*violation);
  std::vector<Array> arrays;
  arrays.push_back(std::get<Array>(std::move(array)));
  return arrays;
}

std::vector<Array> read_arrays(const std::string& path, std::uint64_t max_bytes) {
  return value_or_throw(read_arrays_checked(InputFile::open(path), max_bytes));
}

Array read_array(const std::string& path, std::string_view name, std::uint64_t max_bytes,
                 const ShapeCheck& check) {
  const InputFile file = InputFile::open(path);
  if (!is_zip(first_bytes(file))) {
    if (name.empty()) return value_or_throw(read_checked_npy(file, max_bytes, check));
    throw InputError(path, fmt::format("holds one array without a name, expected an npz with '{}'",
                                       escape(name)));
  }
  const auto members = value_or_throw(in_file(read_npz_directory(file), file));
  if (name.empty() && members.size() != 1) {
    throw InputError(
        path, fmt::format("holds {} arrays, expected the name of one of them", members.size()));
  }
  std::vector<std::string> names;
  for (const ZipMember& member : members) {
    names.push_back(array_name(member));
    if (name.empty() || names.back() == name) {
      return value_or_throw(in_file(read_member(file, member, max_bytes, check), file));
    }
  }
  throw InputError(
      path,
      fmt::format("no array '{}'{}", escape(name),
                  did_you_mean(name, std::vector<std::string_view>(names.begin(), names.end()))));
}

namespace {

OutputTensor tensor_of(std::string name, DType dtype, const Shape& shape, Computed source) {
  return {{.name = std::move(name), .dtype = dtype, .shape = shape}, std::move(source)};
}

Computed copy_of(const Array& array) {
  MASQUE_CHECK(byte_count(array.dtype, array.shape) == array.data.size());
  return {[&array](std::uint64_t offset, MutableBytes out) {
    const Bytes from = Bytes(array.data).subspan(offset, out.size());
    std::copy(from.begin(), from.end(), out.begin());
  }};
}

}  // namespace

void write_npy(const std::string& path, DType dtype, const Shape& shape, const FillFunction& fill,
               int threads) {
  OutputWeights weights;
  weights.writer = "npy";
  weights.tensors.push_back(tensor_of(std::string(kNpyName), dtype, shape, Computed{fill}));
  WriteOptions options;
  options.threads = threads;
  write_checkpoint_file(path, weights, options);
}

void write_npy(const std::string& path, const Array& array) {
  write_npy(path, array.dtype, array.shape, copy_of(array).fill);
}

void write_npz(const std::string& path, std::span<const Array> arrays) {
  OutputWeights weights;
  weights.writer = "npz";
  weights.tensors.reserve(arrays.size());
  for (const Array& array : arrays)
    weights.tensors.push_back(tensor_of(array.name, array.dtype, array.shape, copy_of(array)));
  write_checkpoint_file(path, weights, {});
}

}  // namespace masque::store
