#include "base/file/os.hpp"

#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>

namespace masque::os {

namespace {

std::atomic<FaultInjector*> g_injector{nullptr};

/// True if the call must fail; errno is then set. A short transfer reduces `size` instead.
bool fails(Call call, const char* path, std::size_t* size = nullptr) {
  FaultInjector* injector = g_injector.load(std::memory_order_relaxed);
  if (injector == nullptr) return false;
  const auto fault = injector->before(call, path == nullptr ? "" : path, size ? *size : 0);
  if (!fault) return false;
  if (fault->error == 0) {
    if (size != nullptr) *size = std::min(*size, fault->count);
    return false;
  }
  errno = fault->error;
  return true;
}

/// Tells a test's model of the disk. Keeps errno.
template <class T>
T notify_fault_injector(T result, Event event) {
  FaultInjector* injector = g_injector.load(std::memory_order_relaxed);
  if (injector == nullptr || result < 0) return result;
  const int error = errno;
  if (event.call == Call::kPwrite) event.data = event.data.first(static_cast<std::size_t>(result));
  injector->after(event);
  errno = error;
  return result;
}

}  // namespace

FaultInjector* set_fault_injector(FaultInjector* injector) { return g_injector.exchange(injector); }

int open_at(int folder, const char* path, int flags, mode_t mode) {
  if (fails(Call::kOpen, path)) return -1;
  return notify_fault_injector(::openat(folder, path, flags, mode),
                               {.call = Call::kOpen, .fd = folder, .path = path});
}

int stat_fd(int fd, struct stat& result) {
  return fails(Call::kStat, nullptr) ? -1 : ::fstat(fd, &result);
}

int stat_at(int folder, const char* path, struct stat& result, int flags) {
  return fails(Call::kStat, path) ? -1 : ::fstatat(folder, path, &result, flags);
}

ssize_t pread(int fd, void* data, std::size_t size, off_t offset) {
  return fails(Call::kPread, nullptr, &size) ? -1 : ::pread(fd, data, size, offset);
}

ssize_t read(int fd, void* data, std::size_t size) {
  return fails(Call::kRead, nullptr, &size) ? -1 : ::read(fd, data, size);
}

ssize_t write(int fd, const void* data, std::size_t size) {
  return fails(Call::kWrite, nullptr, &size) ? -1 : ::write(fd, data, size);
}

ssize_t pwrite(int fd, const void* data, std::size_t size, off_t offset) {
  if (fails(Call::kPwrite, nullptr, &size)) return -1;
  return notify_fault_injector(::pwrite(fd, data, size, offset),
                               {.call = Call::kPwrite,
                                .fd = fd,
                                .offset = offset,
                                .data = {static_cast<const std::byte*>(data), size}});
}

ssize_t copy_range(int from, off_t from_offset, int to, off_t to_offset, std::size_t size) {
  if (fails(Call::kCopyRange, nullptr, &size)) return -1;
  return ::copy_file_range(from, &from_offset, to, &to_offset, size, 0);
}

int allocate(int fd, off_t size) {
  return fails(Call::kAllocate, nullptr) ? -1 : ::fallocate(fd, 0, 0, size);
}

int truncate(int fd, off_t size) {
  if (fails(Call::kTruncate, nullptr)) return -1;
  return notify_fault_injector(::ftruncate(fd, size),
                               {.call = Call::kTruncate, .fd = fd, .offset = size});
}

int sync(int fd) {
  return fails(Call::kSync, nullptr)
             ? -1
             : notify_fault_injector(::fsync(fd), {.call = Call::kSync, .fd = fd});
}

int rename_at(int folder, const char* from, const char* to, unsigned flags) {
  if (fails(Call::kRename, from)) return -1;
  return notify_fault_injector(::renameat2(folder, from, folder, to, flags),
                               {.call = Call::kRename, .fd = folder, .path = from, .to = to});
}

int unlink_at(int folder, const char* path) {
  if (fails(Call::kUnlink, path)) return -1;
  return notify_fault_injector(::unlinkat(folder, path, 0),
                               {.call = Call::kUnlink, .fd = folder, .path = path});
}

int rmdir_at(int folder, const char* path) {
  return fails(Call::kRmdir, path) ? -1 : ::unlinkat(folder, path, AT_REMOVEDIR);
}

int mkdir_at(int folder, const char* path, mode_t mode) {
  return fails(Call::kMkdir, path) ? -1 : ::mkdirat(folder, path, mode);
}

int lock_exclusive(int fd) {
  return fails(Call::kLock, nullptr) ? -1 : ::flock(fd, LOCK_EX | LOCK_NB);
}

int chmod_fd(int fd, mode_t mode) { return fails(Call::kChmod, nullptr) ? -1 : ::fchmod(fd, mode); }

}  // namespace masque::os
