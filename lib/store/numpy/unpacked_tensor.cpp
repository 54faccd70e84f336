#include "store/numpy/unpacked_tensor.hpp"

#include <algorithm>
#include <vector>

#include "base/divide.hpp"
#include "store/numpy/npy.hpp"

namespace masque::store {

void UnpackedTensor::read(const void* owner, std::uint64_t size, std::uint64_t offset,
                          MutableBytes out, const Fill& fill) {
  if (offset == 0 && out.size() == size) return fill(out);
  std::shared_ptr<const std::vector<std::byte>> bytes;
  {
    const std::lock_guard lock(mutex_);
    if (owner_ != owner) {
      owner_ = nullptr;
      bytes_.reset();  // before the next one takes memory
      auto all = std::make_shared<std::vector<std::byte>>(size);
      fill(*all);
      bytes_ = std::move(all);
      owner_ = owner;
    }
    bytes = bytes_;
  }
  std::copy_n(bytes->begin() + static_cast<std::ptrdiff_t>(offset), out.size(), out.begin());
}

void UnpackedTensor::forget(const void* owner) {
  const std::lock_guard lock(mutex_);
  if (owner_ != owner) return;
  owner_ = nullptr;
  bytes_.reset();
}

namespace {

class UnpackingReader : public TensorReader {
 public:
  UnpackingReader(std::uint64_t size, UnpackFunction unpack, std::shared_ptr<UnpackedTensor> last)
      : size_(size), unpack_(std::move(unpack)), last_(std::move(last)) {}
  // The next reader may get this one's address.
  ~UnpackingReader() override { last_->forget(this); }

  void read(const InputFile& file, std::uint64_t offset, MutableBytes out) const override {
    last_->read(this, size_, offset, out, [&](MutableBytes all) { unpack_(file, all); });
  }

 private:
  std::uint64_t size_;
  UnpackFunction unpack_;
  std::shared_ptr<UnpackedTensor> last_;
};

}  // namespace

std::shared_ptr<const TensorReader> unpacking_reader(std::uint64_t size, UnpackFunction unpack,
                                                     std::shared_ptr<UnpackedTensor> last) {
  return std::make_shared<UnpackingReader>(size, std::move(unpack), std::move(last));
}

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
    std::vector<std::byte> whole(round_up(skip + out.size(), width));
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
