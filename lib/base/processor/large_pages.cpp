#include "base/processor/large_pages.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <mutex>
#include <new>
#include <utility>

#include "base/divide.hpp"

namespace masque {
namespace {

constexpr std::size_t kPage = std::size_t{2} << 20;
constexpr std::size_t kRegion = std::size_t{32} << 20;
constexpr std::size_t kAlignment = 64;

/// Address space from the system, zeroed when first touched.
class Region {
 public:
  explicit Region(std::size_t size) : mapped_(size + kPage) {
    if (mapped_ < size) throw std::bad_alloc();
    base_ = ::mmap(nullptr, mapped_, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base_ == MAP_FAILED) throw std::bad_alloc();
    const auto address = reinterpret_cast<std::uintptr_t>(base_);
    data_ = static_cast<std::byte*>(base_) + (kPage - address % kPage) % kPage;
    size_ = size;
#ifdef MADV_HUGEPAGE
    // Not even a failure matters: small pages hold the same.
    static_cast<void>(::madvise(data_, size_, MADV_HUGEPAGE));
#endif
  }
  Region(const Region&) = delete;
  Region& operator=(const Region&) = delete;
  ~Region() { ::munmap(base_, mapped_); }

  /// The next piece; null if it does not fit.
  std::byte* take(std::size_t bytes) {
    if (bytes > size_ - used_) return nullptr;
    std::byte* piece = data_ + used_;
    used_ += std::min(round_up(bytes, kAlignment), size_ - used_);
    return piece;
  }

 private:
  void* base_;
  std::size_t mapped_;
  std::byte* data_;
  std::size_t size_ = 0;
  std::size_t used_ = 0;
};

}  // namespace

std::shared_ptr<std::byte> large_pages(std::size_t bytes) {
  static std::mutex mutex;
  static std::weak_ptr<Region> current;
  const std::lock_guard lock(mutex);
  std::shared_ptr<Region> region = current.lock();
  std::byte* piece = region == nullptr ? nullptr : region->take(bytes);
  if (piece == nullptr) {
    region = std::make_shared<Region>(std::max(bytes, kRegion));
    piece = region->take(bytes);
    if (bytes < kRegion) current = region;
  }
  return {std::move(region), piece};
}

}  // namespace masque
