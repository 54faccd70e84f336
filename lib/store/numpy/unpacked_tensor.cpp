#include "store/numpy/unpacked_tensor.hpp"

#include <algorithm>

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

}  // namespace masque::store
