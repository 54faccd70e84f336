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

int open_at(int folder, const char* path, int flags, mode_t mode = 0);
int stat_fd(int fd, struct stat& result);
int stat_at(int folder, const char* path, struct stat& result, int flags);
ssize_t pread(int fd, void* data, std::size_t size, off_t offset);
ssize_t read(int fd, void* data, std::size_t size);
ssize_t write(int fd, const void* data, std::size_t size);
ssize_t pwrite(int fd, const void* data, std::size_t size, off_t offset);
ssize_t copy_range(int from, off_t from_offset, int to, off_t to_offset, std::size_t size);
int allocate(int fd, off_t size);
int truncate(int fd, off_t size);
int sync(int fd);
int rename_at(int folder, const char* from, const char* to, unsigned flags = 0);
int unlink_at(int folder, const char* path);
int rmdir_at(int folder, const char* path);
int mkdir_at(int folder, const char* path, mode_t mode);
int lock_exclusive(int fd);
int chmod_fd(int fd, mode_t mode);

}  // namespace masque::os
