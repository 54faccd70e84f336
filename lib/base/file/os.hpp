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

/// The calls of this file, for an injector; kStat is that of stat_fd() and stat_at().
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
  Call call = Call::kOpen;               ///< what was called
  int fd = -1;                           ///< the file; of calls with a path: its folder
  std::string_view path = {};            ///< of calls with a path; valid during the call of after()
  std::string_view to = {};              ///< of a rename: the new name
  off_t offset = 0;                      ///< of a pwrite; of a truncation: the new size; bytes
  std::span<const std::byte> data = {};  ///< what was written; valid during the call of after()
};

/// Decides, before each call, whether it fails. Called from several threads.
class FaultInjector {
 public:
  virtual ~FaultInjector() = default;
  /// Returns what `call` does instead of the real call; nothing: the real call is made. `path` is
  /// empty where the call has none; `size` is the bytes requested, 0 if none.
  virtual std::optional<Fault> before(Call call, std::string_view path, std::size_t size) = 0;
  /// Called after every open, pwrite, truncation, sync, rename and unlink that succeeded, so that a
  /// test can follow what a disk has to keep.
  virtual void after(const Event& /*event*/) {}
};

/// Installs `injector` (nullptr: none), which must live until another one is installed, and returns
/// the one before. For tests; not thread-safe.
FaultInjector* set_fault_injector(FaultInjector* injector);

// All return −1 with errno set where they fail, and each asks the injector first. The call of the
// system is named where the function's name does not say it.

/// openat of `path` in `folder` with `flags`, and with `mode` for a new file: returns a descriptor,
/// which is the caller's. An event.
int open_at(int folder, const char* path, int flags, mode_t mode = 0);
/// fstat of `fd` into `result`: returns 0.
int stat_fd(int fd, struct stat& result);
/// fstatat of `path` in `folder` into `result`, with `flags`: returns 0.
int stat_at(int folder, const char* path, struct stat& result, int flags);
/// Reads up to `size` bytes of `fd` at byte `offset` into `data`; returns how many, 0 at the end of
/// the file.
ssize_t pread(int fd, void* data, std::size_t size, off_t offset);
/// Reads up to `size` bytes from where `fd` stands into `data`; returns how many, 0 at the end.
ssize_t read(int fd, void* data, std::size_t size);
/// Writes up to `size` bytes of `data` to where `fd` stands; returns how many.
ssize_t write(int fd, const void* data, std::size_t size);
/// Writes up to `size` bytes of `data` to `fd` at byte `offset`; returns how many. An event.
ssize_t pwrite(int fd, const void* data, std::size_t size, off_t offset);
/// copy_file_range of up to `size` bytes of `from` at byte `from_offset` to `to` at byte
/// `to_offset`: returns how many, 0 at the end of the file.
ssize_t copy_range(int from, off_t from_offset, int to, off_t to_offset, std::size_t size);
/// fallocate of the first `size` bytes of `fd`: returns 0. EOPNOTSUPP or ENOSYS where the file
/// system cannot.
int allocate(int fd, off_t size);
/// ftruncate of `fd` to `size` bytes: returns 0. An event.
int truncate(int fd, off_t size);
/// fsync of `fd`: returns 0. An event.
int sync(int fd);
/// renameat2 within `folder` of the entry `from` to the name `to`, with `flags`: returns 0. An
/// event.
int rename_at(int folder, const char* from, const char* to, unsigned flags = 0);
/// unlinkat of the file `path` in `folder`: returns 0. An event.
int unlink_at(int folder, const char* path);
/// unlinkat of the empty folder `path` in `folder`: returns 0.
int rmdir_at(int folder, const char* path);
/// mkdirat of `path` in `folder` with `mode`: returns 0.
int mkdir_at(int folder, const char* path, mode_t mode);
/// flock of `fd` without waiting: returns 0; EWOULDBLOCK where another open description has the
/// lock.
int lock_exclusive(int fd);
/// fchmod of `fd` to `mode`: returns 0.
int chmod_fd(int fd, mode_t mode);

}  // namespace masque::os
