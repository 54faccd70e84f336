#include "store/array.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <optional>

#include <fmt/format.h>

#include "base/edit_distance.hpp"
#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/interrupt.hpp"
#include "store/npy.hpp"
#include "store/zip_stream.hpp"

namespace masque {

namespace {

constexpr std::string_view kSuffix = ".npy";
constexpr std::size_t kPieceBytes = 1 << 20;
constexpr ZipRules kNpzRules{.deflate = true, .ignore_case = false};

/// Gives the bytes of an npy in order.
using ByteSource = std::function<std::optional<Violation>(MutableBytes out)>;

/// Turns big-endian numbers around; the two parts of a complex one stay in order.
void swap_bytes(DType dtype, MutableBytes data) {
  const std::size_t width = dtype == DType::kC64 ? 4 : dtype_bits(dtype) / 8;
  for (std::size_t at = 0; at < data.size(); at += width) {
    std::reverse(data.begin() + static_cast<std::ptrdiff_t>(at),
                 data.begin() + static_cast<std::ptrdiff_t>(at + width));
  }
}

/// Puts elements that arrive in column-major order where they belong in row-major order.
class Transposer {
 public:
  Transposer(const Shape& shape, std::size_t width, MutableBytes out)
      : shape_(shape), width_(width), out_(out), index_(shape.size()), stride_(shape.size()) {
    std::uint64_t stride = width;
    for (std::size_t axis = shape.size(); axis-- > 0; stride *= shape[axis]) stride_[axis] = stride;
  }

  void add(Bytes elements) {
    for (; !elements.empty(); elements = elements.subspan(width_)) {
      std::copy_n(elements.begin(), width_, out_.begin() + static_cast<std::ptrdiff_t>(at_));
      step();
    }
  }

 private:
  void step() {
    for (std::size_t axis = 0; axis < shape_.size(); ++axis) {
      at_ += stride_[axis];
      if (++index_[axis] < shape_[axis]) return;
      at_ -= stride_[axis] * shape_[axis];
      index_[axis] = 0;
    }
  }

  const Shape& shape_;
  std::size_t width_;
  MutableBytes out_;
  std::vector<std::uint64_t> index_;   ///< of the next element
  std::vector<std::uint64_t> stride_;  ///< bytes from one to the next along an axis
  std::uint64_t at_ = 0;
};

/// Reads an npy of `size` bytes; `exact` refuses bytes behind the data. Places in a violation count
/// from its first byte.
Checked<Array> read_from(const ByteSource& source, std::uint64_t size, std::uint64_t max_bytes,
                         bool exact) {
  const NpyLimits limits;
  std::vector<std::byte> first(std::min(size, kNpyPrefixBytes + limits.header_bytes));
  if (auto violation = source(first)) return *std::move(violation);
  auto parsed = parse_npy_header(first, size, limits);
  if (auto* violation = std::get_if<Violation>(&parsed)) return std::move(*violation);
  NpyHeader& header = std::get<NpyHeader>(parsed);
  if (header.data_bytes > max_bytes) {
    return Violation{
        "limit-bytes",
        fmt::format("{} {} has {} bytes, expected at most {}", dtype_name(header.dtype),
                    shape_text(header.shape), header.data_bytes, max_bytes),
        "", header.data_begin};
  }
  if (exact && header.data_begin + header.data_bytes < size) {
    return Violation{"npz-rest", header.notes.back() + ", expected none in an npz", "",
                     header.data_begin + header.data_bytes};
  }
  Array array{"", header.dtype, std::move(header.shape), {}, std::move(header.notes)};
  array.data.resize(header.data_bytes);
  const std::size_t width = dtype_bits(array.dtype) / 8;
  const bool transposed = header.fortran_order && array.shape.size() > 1;
  Transposer transposer(array.shape, width, array.data);
  std::vector<std::byte> buffer(transposed ? std::min(kPieceBytes, array.data.size()) : 0);
  // What came with the header, then piece by piece; every piece is of whole elements.
  Bytes early = Bytes(first).subspan(header.data_begin);
  for (std::size_t at = 0; at < array.data.size();) {
    throw_if_interrupted();
    const std::size_t count = std::min(kPieceBytes, array.data.size() - at);
    const MutableBytes piece = transposed ? MutableBytes(buffer).first(count)
                                          : MutableBytes(array.data).subspan(at, count);
    const Bytes here = early.first(std::min(early.size(), count));
    std::copy(here.begin(), here.end(), piece.begin());
    early = early.subspan(here.size());
    if (auto violation = source(piece.subspan(here.size()))) return *std::move(violation);
    if (header.big_endian) swap_bytes(array.dtype, piece);
    if (transposed) transposer.add(piece);
    at += count;
  }
  return array;
}

/// The members of an npz, all of which must be called NAME.npy.
Checked<std::vector<ZipMember>> read_npz_directory(const InputFile& file) {
  auto checked = read_zip_directory(file, kNpzRules);
  if (const auto* members = std::get_if<std::vector<ZipMember>>(&checked)) {
    for (const ZipMember& member : *members) {
      if (member.name.size() > kSuffix.size() && member.name.ends_with(kSuffix)) continue;
      return Violation{"npz-member", "a zip file with other members, expected NAME.npy",
                       member.name, member.header_begin};
    }
  }
  return checked;
}

std::string array_name(const ZipMember& member) {
  return member.name.substr(0, member.name.size() - kSuffix.size());
}

Checked<Array> read_member(const InputFile& file, const ZipMember& member,
                           std::uint64_t max_bytes) {
  ZipStream stream(file, member);
  // Exactly what the npy announces is unpacked, so that max_bytes bounds the time, too.
  auto array =
      read_from([&](MutableBytes out) { return stream.read(out); }, member.bytes, max_bytes, true);
  if (auto* violation = std::get_if<Violation>(&array)) {
    const bool in_npy = violation->tensor.empty();
    const bool stored = member.method == ZipMethod::kStored;
    if (in_npy) violation->offset = member.data_begin + (stored ? violation->offset : 0);
    violation->tensor = member.name;
    return array;
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

Checked<Array> read_npy(const InputFile& file, std::uint64_t max_bytes) {
  std::uint64_t at = 0;
  const auto source = [&](MutableBytes out) -> std::optional<Violation> {
    file.read(at, out);
    at += out.size();
    return std::nullopt;
  };
  return in_file(read_from(source, file.size(), max_bytes, false), file);
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

Array read_array(const std::string& path, std::string_view name, std::uint64_t max_bytes) {
  const InputFile file = InputFile::open(path);
  if (!is_zip(first_bytes(file))) {
    if (name.empty()) return value_or_throw(read_npy(file, max_bytes));
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
      return value_or_throw(in_file(read_member(file, member, max_bytes), file));
    }
  }
  const auto near = nearest(name, std::vector<std::string_view>(names.begin(), names.end()));
  throw InputError(
      path, fmt::format("no array '{}'{}", escape(name),
                        near ? fmt::format("; did you mean '{}'?", escape(*near)) : std::string()));
}

}  // namespace masque
