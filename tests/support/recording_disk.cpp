// A file system that passes every call on to a folder and writes down what changes it, and what is
// made durable: the disk as whole programs see it.
//   recording_disk FOLDER MOUNT_POINT LOG
// Stays in the foreground until it is unmounted. Links and devices are not known there.
#define FUSE_USE_VERSION 35
#include <dirent.h>
#include <fcntl.h>
#include <fuse.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <map>
#include <string>
#include <vector>

#include "support/disk_log.hpp"

namespace {

using masque::test::DiskChange;
using Kind = DiskChange::Kind;

/// What is watched. One for the program: the calls of fuse are plain functions.
struct Watched {
  int root = -1;
  std::FILE* log = nullptr;
  std::map<ino_t, std::uint64_t> numbers;
  std::uint64_t next = 1;
};
Watched watched;

/// The path of fuse, "/a/b", below the folder.
const char* below(const char* path) { return path[1] == '\0' ? "." : path + 1; }

std::string folder_of(const char* path) {
  const std::string all = below(path);
  const std::size_t slash = all.rfind('/');
  return slash == std::string::npos ? "." : all.substr(0, slash);
}

std::string name_of(const char* path) {
  const std::string all = below(path);
  return all.substr(all.rfind('/') + 1);
}

std::uint64_t number_at(const std::string& path) {
  struct stat info = {};
  return ::fstatat(watched.root, path.c_str(), &info, AT_SYMLINK_NOFOLLOW) == 0
             ? watched.numbers[info.st_ino]
             : 0;
}

std::uint64_t number_of(int fd) {
  struct stat info = {};
  return ::fstat(fd, &info) == 0 ? watched.numbers[info.st_ino] : 0;
}

/// A number for what is new at a path.
std::uint64_t new_number(const std::string& path) {
  struct stat info = {};
  if (::fstatat(watched.root, path.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0) return 0;
  return watched.numbers[info.st_ino] = watched.next++;
}

void note(const DiskChange& change) { masque::test::write_change(watched.log, change); }

int result(long value) { return value < 0 ? -errno : static_cast<int>(value); }
int handle(const fuse_file_info* file) { return static_cast<int>(file->fh); }

// --- What is there at the start.

void note_bytes(int fd, std::uint64_t number, off_t size) {
  std::vector<char> buffer(1 << 20);
  // Holes stay holes.
  for (off_t at = ::lseek(fd, 0, SEEK_DATA); at >= 0 && at < size;) {
    const ssize_t count = ::pread(fd, buffer.data(), buffer.size(), at);
    if (count <= 0) break;
    note({.kind = Kind::kBytes,
          .file = number,
          .offset = static_cast<std::uint64_t>(at),
          .bytes = std::string(buffer.data(), static_cast<std::size_t>(count))});
    at = ::lseek(fd, at + count, SEEK_DATA);
  }
  note({.kind = Kind::kSize, .file = number, .offset = static_cast<std::uint64_t>(size)});
}

void note_folder(const std::string& path, std::uint64_t number) {
  const int fd = ::openat(watched.root, path.c_str(), O_RDONLY | O_DIRECTORY);
  DIR* const stream = fd < 0 ? nullptr : ::fdopendir(fd);
  if (stream == nullptr) return;
  while (const dirent* entry = ::readdir(stream)) {
    const std::string name = entry->d_name;
    if (name == "." || name == "..") continue;
    const std::string child = path + "/" + name;
    const std::uint64_t file = new_number(child);
    const bool folder = entry->d_type == DT_DIR;
    note({.kind = folder ? Kind::kMakeFolder : Kind::kCreate,
          .file = file,
          .folder = number,
          .name = name});
    if (folder) {
      note_folder(child, file);
      continue;
    }
    const int data = ::openat(watched.root, child.c_str(), O_RDONLY);
    struct stat info = {};
    if (::fstat(data, &info) == 0) note_bytes(data, file, info.st_size);
    ::close(data);
  }
  ::closedir(stream);
}

// --- The calls.

int get_attributes(const char* path, struct stat* info, fuse_file_info* file) {
  if (file != nullptr) return result(::fstat(handle(file), info));
  return result(::fstatat(watched.root, below(path), info, AT_SYMLINK_NOFOLLOW));
}

int open_file(const char* path, fuse_file_info* file) {
  // The kernel says where it appends.
  const int fd = ::openat(watched.root, below(path), file->flags & ~O_APPEND);
  if (fd < 0) return -errno;
  file->fh = static_cast<std::uint64_t>(fd);
  if ((file->flags & O_TRUNC) != 0) note({.kind = Kind::kCut, .file = number_of(fd)});
  return 0;
}

int create_file(const char* path, mode_t mode, fuse_file_info* file) {
  const bool there = ::faccessat(watched.root, below(path), F_OK, AT_SYMLINK_NOFOLLOW) == 0;
  const int fd = ::openat(watched.root, below(path), (file->flags & ~O_APPEND) | O_CREAT, mode);
  if (fd < 0) return -errno;
  file->fh = static_cast<std::uint64_t>(fd);
  if (there) return 0;
  note({.kind = Kind::kCreate,
        .file = new_number(below(path)),
        .folder = number_at(folder_of(path)),
        .name = name_of(path)});
  return 0;
}

int read_bytes(const char*, char* out, std::size_t size, off_t offset, fuse_file_info* file) {
  return result(::pread(handle(file), out, size, offset));
}

int write_bytes(const char*, const char* data, std::size_t size, off_t offset,
                fuse_file_info* file) {
  const ssize_t count = ::pwrite(handle(file), data, size, offset);
  if (count < 0) return -errno;
  note({.kind = Kind::kBytes,
        .file = number_of(handle(file)),
        .offset = static_cast<std::uint64_t>(offset),
        .bytes = std::string(data, static_cast<std::size_t>(count))});
  return static_cast<int>(count);
}

int cut(const char* path, off_t size, fuse_file_info* file) {
  const int fd = file != nullptr ? handle(file) : ::openat(watched.root, below(path), O_WRONLY);
  if (fd < 0) return -errno;
  const int status = result(::ftruncate(fd, size));
  if (status == 0)
    note({.kind = Kind::kCut, .file = number_of(fd), .offset = static_cast<std::uint64_t>(size)});
  if (file == nullptr) ::close(fd);
  return status;
}

int allocate(const char*, int mode, off_t offset, off_t size, fuse_file_info* file) {
  // Holes of a device's image and the like: whoever asks has another way.
  if (mode != 0) return -EOPNOTSUPP;
  const int status = result(::fallocate(handle(file), mode, offset, size));
  if (status == 0)
    note({.kind = Kind::kSize,
          .file = number_of(handle(file)),
          .offset = static_cast<std::uint64_t>(offset + size)});
  return status;
}

int sync_file(const char*, int, fuse_file_info* file) {
  note({.kind = Kind::kSyncFile, .file = number_of(handle(file))});
  return 0;
}

int sync_folder(const char*, int, fuse_file_info* file) {
  note({.kind = Kind::kSyncFolder, .file = number_of(handle(file))});
  return 0;
}

int make_folder(const char* path, mode_t mode) {
  if (::mkdirat(watched.root, below(path), mode) != 0) return -errno;
  note({.kind = Kind::kMakeFolder,
        .file = new_number(below(path)),
        .folder = number_at(folder_of(path)),
        .name = name_of(path)});
  return 0;
}

int remove_name(const char* path, int flags) {
  if (::unlinkat(watched.root, below(path), flags) != 0) return -errno;
  note({.kind = Kind::kUnlink, .folder = number_at(folder_of(path)), .name = name_of(path)});
  return 0;
}

int rename_to(const char* from, const char* to, unsigned flags) {
  const std::uint64_t file = number_at(below(from));
  const std::uint64_t folder = number_at(folder_of(from));
  const std::uint64_t to_folder = number_at(folder_of(to));
  const bool exchange = (flags & RENAME_EXCHANGE) != 0;
  if (exchange && folder != to_folder) return -EXDEV;
  if (::renameat2(watched.root, below(from), watched.root, below(to), flags) != 0) return -errno;
  note({.kind = exchange ? Kind::kExchange : Kind::kRename,
        .file = file,
        .folder = folder,
        .name = name_of(from),
        .to_folder = to_folder,
        .to = name_of(to)});
  return 0;
}

int open_folder(const char* path, fuse_file_info* file) {
  const int fd = ::openat(watched.root, below(path), O_RDONLY | O_DIRECTORY);
  if (fd < 0) return -errno;
  file->fh = static_cast<std::uint64_t>(fd);
  return 0;
}

int list_folder(const char*, void* out, fuse_fill_dir_t fill, off_t, fuse_file_info* file,
                fuse_readdir_flags) {
  const int fd = ::openat(handle(file), ".", O_RDONLY | O_DIRECTORY);
  DIR* const stream = fd < 0 ? nullptr : ::fdopendir(fd);
  if (stream == nullptr) return -errno;
  while (const dirent* entry = ::readdir(stream)) {
    struct stat info = {};
    info.st_ino = entry->d_ino;
    info.st_mode = static_cast<mode_t>(entry->d_type) << 12U;
    fill(out, entry->d_name, &info, 0, fuse_fill_dir_flags{});
  }
  ::closedir(stream);
  return 0;
}

int close_handle(const char*, fuse_file_info* file) { return result(::close(handle(file))); }

fuse_operations operations() {
  fuse_operations out = {};
  out.init = [](fuse_conn_info*, fuse_config* config) -> void* {
    config->use_ino = 1;
    config->hard_remove = 1;
    config->nullpath_ok = 1;
    return nullptr;
  };
  out.getattr = get_attributes;
  out.open = open_file;
  out.create = create_file;
  out.read = read_bytes;
  out.write = write_bytes;
  out.truncate = cut;
  out.fallocate = allocate;
  out.fsync = sync_file;
  out.fsyncdir = sync_folder;
  out.mkdir = make_folder;
  out.unlink = [](const char* path) { return remove_name(path, 0); };
  out.rmdir = [](const char* path) { return remove_name(path, AT_REMOVEDIR); };
  out.rename = rename_to;
  out.opendir = open_folder;
  out.readdir = list_folder;
  out.release = close_handle;
  out.releasedir = close_handle;
  out.chmod = [](const char* path, mode_t mode, fuse_file_info* file) {
    return result(file != nullptr ? ::fchmod(handle(file), mode)
                                  : ::fchmodat(watched.root, below(path), mode, 0));
  };
  out.chown = [](const char* path, uid_t user, gid_t group, fuse_file_info* file) {
    return result(file != nullptr ? ::fchown(handle(file), user, group)
                                  : ::fchownat(watched.root, below(path), user, group, 0));
  };
  out.utimens = [](const char* path, const timespec* times, fuse_file_info* file) {
    return result(file != nullptr ? ::futimens(handle(file), times)
                                  : ::utimensat(watched.root, below(path), times, 0));
  };
  out.statfs = [](const char*, struct statvfs* info) {
    return result(::fstatvfs(watched.root, info));
  };
  return out;
}

int record(char** argv) {
  watched.root = ::open(argv[1], O_RDONLY | O_DIRECTORY);
  watched.log = std::fopen(argv[3], "wb");
  if (watched.root < 0 || watched.log == nullptr) {
    std::fprintf(stderr, "recording_disk: cannot open %s or %s\n", argv[1], argv[3]);
    return 3;
  }
  struct stat info = {};
  ::fstat(watched.root, &info);
  watched.numbers[info.st_ino] = 0;
  note_folder(".", 0);
  note({.kind = Kind::kAllOnDisk});
  std::array<char*, 5> arguments = {argv[0], const_cast<char*>("-f"), const_cast<char*>("-s"),
                                    argv[2], nullptr};
  const fuse_operations calls = operations();
  const int code = fuse_main(4, arguments.data(), &calls, nullptr);
  return std::fclose(watched.log) == 0 ? code : 3;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  try {
    return record(argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "recording_disk: %s\n", error.what());
    return 3;
  }
}
