// The system calls that reading and writing use, one thin function each, so that a test can make
// any of them fail. Same arguments, results and errno as the calls themselves.
#pragma once

#include <sys/stat.h>
#include <sys/types.h>

#include <cstddef>
#include <optional>
#include <span>
#include <string_view>

namespace masque::os {

enum class Call {
  kOpen,
  kStat,
  kPread,
  kRead,
  kWrite,
  kPwrite,
  kCopyRange,
  kAllocate,
  kTruncate,
  kSync,
  kRename,
  kUnlink,
  kMkdir,
  kRmdir,
  kLock,
  kChmod,
};

/// What an injected call does instead of the real one.
struct Fault {
  int error = 0;          ///< fails with this errno, unless `count` is set
  std::size_t count = 0;  ///< a short transfer: at most this many bytes move
};

/// A call that changed something, or made it durable, and succeeded.
struct Event {
  Call call = Call::kOpen;
  int fd = -1;  ///< the file; of calls with a path: its folder
  std::string_view path = {};
  std::string_view to = {};              ///< of a rename
  off_t offset = 0;                      ///< of a pwrite; of a truncation: the new size
  std::span<const std::byte> data = {};  ///< what was written
};

/// Decides, before each call, whether it fails. Called from several threads.
class FaultInjector {
 public:
  virtual ~FaultInjector() = default;
  /// `path` is empty where the call has none; `size` is the bytes requested, 0 if none.
  virtual std::optional<Fault> before(Call call, std::string_view path, std::size_t size) = 0;
  /// Called after every open, pwrite, truncation, sync, rename and unlink that succeeded, so that a
  /// test can follow what a disk has to keep.
  virtual void after(const Event& /*event*/) {}
};

/// Installs an injector (nullptr: none) and returns the one before. For tests; not thread-safe.
FaultInjector* set_fault_injector(FaultInjector* injector);

// All return −1 with errno set where they fail, and each asks the injector first. The call of the
// system is named where the function's name does not say it.

/// openat: a descriptor.
int open_at(int folder, const char* path, int flags, mode_t mode = 0);
/// fstat: 0.
int stat_fd(int fd, struct stat& result);
/// fstatat: 0.
int stat_at(int folder, const char* path, struct stat& result, int flags);
/// Bytes that were read, perhaps fewer than `size`; 0 at the end of the file.
ssize_t pread(int fd, void* data, std::size_t size, off_t offset);
/// The same from where the descriptor stands.
ssize_t read(int fd, void* data, std::size_t size);
/// Bytes that were written, perhaps fewer than `size`.
ssize_t write(int fd, const void* data, std::size_t size);
/// The same at an offset. An event.
ssize_t pwrite(int fd, const void* data, std::size_t size, off_t offset);
/// copy_file_range: bytes that were copied, perhaps fewer than `size`; 0 at the end of the file.
ssize_t copy_range(int from, off_t from_offset, int to, off_t to_offset, std::size_t size);
/// fallocate of the first `size` bytes: 0. EOPNOTSUPP or ENOSYS where the file system cannot.
int allocate(int fd, off_t size);
/// ftruncate: 0. An event.
int truncate(int fd, off_t size);
/// fsync: 0. An event.
int sync(int fd);
/// renameat2 within a folder: 0. An event.
int rename_at(int folder, const char* from, const char* to, unsigned flags = 0);
/// unlinkat of a file: 0. An event.
int unlink_at(int folder, const char* path);
/// unlinkat of an empty folder: 0.
int rmdir_at(int folder, const char* path);
/// mkdirat: 0.
int mkdir_at(int folder, const char* path, mode_t mode);
/// flock without waiting: 0; EWOULDBLOCK where another process has the lock.
int lock_exclusive(int fd);
/// fchmod: 0.
int chmod_fd(int fd, mode_t mode);

}  // namespace masque::os
