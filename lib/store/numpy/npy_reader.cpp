#include "store/numpy/npy_reader.hpp"

#include <algorithm>
#include <vector>

#include "store/numpy/npy_elements.hpp"

namespace masque::store {

namespace {

/// Row-major elements in the other byte order.
class SwappingReader : public TensorReader {
 public:
  SwappingReader(DType dtype, std::uint64_t begin) : dtype_(dtype), begin_(begin) {}

  void read(const InputFile& file, std::uint64_t offset, MutableBytes out) const override {
    const std::uint64_t width = dtype_bits(dtype_) / 8;
    const std::uint64_t skip = offset % width;
    if (skip == 0 && out.size() % width == 0) {
      file.read(begin_ + offset, out);
      return swap_bytes(dtype_, out);
    }
    // Whole elements around the bytes.
    std::vector<std::byte> whole((skip + out.size() + width - 1) / width * width);
    file.read(begin_ + offset - skip, whole);
    swap_bytes(dtype_, whole);
    std::copy_n(whole.begin() + static_cast<std::ptrdiff_t>(skip), out.size(), out.begin());
  }

 private:
  DType dtype_;
  std::uint64_t begin_;
};

[[noreturn]] void throw_in(const InputFile& file, Violation violation) {
  violation.file = file.path();
  throw_violation(violation);
}

UnpackFunction unpack_npy(const NpyHeader& header) {
  return [header](const InputFile& file, MutableBytes out) {
    std::uint64_t at = header.data_begin;
    const auto source = [&](MutableBytes part) -> std::optional<Violation> {
      file.read(at, part);
      at += part.size();
      return std::nullopt;
    };
    if (auto violation = read_npy_elements(header, source, out)) throw_in(file, *violation);
  };
}

UnpackFunction unpack_member(const NpyHeader& header, const ZipMember& member) {
  return [header, member](const InputFile& file, MutableBytes out) {
    ZipStream stream(file, member);
    std::vector<std::byte> before(header.data_begin);
    auto violation = stream.read(before);
    const auto source = [&](MutableBytes part) { return stream.read(part); };
    if (!violation) violation = read_npy_elements(header, source, out);
    if (!violation) violation = stream.finish();
    if (violation) throw_in(file, *std::move(violation));
  };
}

}  // namespace

std::shared_ptr<const TensorReader> npy_reader(const NpyHeader& header) {
  if (is_transposed(header)) {
    return unpacking_reader(header.data_bytes, unpack_npy(header),
                            std::make_shared<UnpackedTensor>());
  }
  if (!header.big_endian) return nullptr;
  return std::make_shared<SwappingReader>(header.dtype, header.data_begin);
}

std::shared_ptr<const TensorReader> npz_reader(const NpyHeader& header, const ZipMember& member,
                                               const std::shared_ptr<UnpackedTensor>& last) {
  if (is_transposed(header) || member.method != ZipMethod::kStored)
    return unpacking_reader(header.data_bytes, unpack_member(header, member), last);
  if (!header.big_endian) return nullptr;
  return std::make_shared<SwappingReader>(header.dtype, member.data_begin + header.data_begin);
}

}  // namespace masque::store
