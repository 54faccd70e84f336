#include "base/file/output_file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <string_view>
#include <system_error>

#include <fmt/format.h>

#include "base/digest/hash.hpp"
#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/file/os.hpp"

namespace masque {

namespace {

bool is_hash_name(const std::string& name) {
  return (name.size() == 40 || name.size() == 64) &&
         std::all_of(name.begin(), name.end(), [](unsigned char c) { return std::isxdigit(c); });
}

std::string link_target(const std::string& path) {
  std::string target(4096, '\0');
  const ssize_t size = ::readlink(path.c_str(), target.data(), target.size());
  target.resize(size < 0 ? 0 : static_cast<std::size_t>(size));
  return target;
}

bool same_file(const struct stat& a, const struct stat& b) {
  return a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

bool unchanged(const struct stat& a, const struct stat& b) {
  return same_file(a, b) && a.st_size == b.st_size && a.st_mtim.tv_sec == b.st_mtim.tv_sec &&
         a.st_mtim.tv_nsec == b.st_mtim.tv_nsec;
}

/// The umask as /proc shows it; nothing without /proc. The system call only tells it by changing
/// it, and files that other threads make at that moment would be open to everybody.
std::optional<mode_t> shown_umask() {
  constexpr std::string_view kLabel = "\nUmask:\t";
  std::array<char, 512> buffer{};  // the line is the second one
  const Descriptor fd(::open("/proc/self/status", O_RDONLY | O_CLOEXEC));
  const ssize_t size = fd ? ::read(fd.get(), buffer.data(), buffer.size()) : 0;
  const std::string_view text(buffer.data(), size > 0 ? static_cast<std::size_t>(size) : 0);
  const std::size_t at = text.find(kLabel);
  if (at == std::string_view::npos) return std::nullopt;
  const std::string_view digits = text.substr(at + kLabel.size());
  unsigned mask = 0;
  const auto end = std::from_chars(digits.data(), digits.data() + digits.size(), mask, 8);
  if (end.ec != std::errc() || end.ptr == digits.data() + digits.size()) return std::nullopt;
  return mask;
}

}  // namespace

std::optional<struct stat> entry_state(int folder, const std::string& name,
                                       const std::string& path) {
  struct stat info = {};
  if (os::stat_at(folder, name.c_str(), info, AT_SYMLINK_NOFOLLOW) == 0) return info;
  if (errno == ENOENT) return std::nullopt;
  throw system_error(path, "reading the status of the output", errno);
}

void take_mode(int fd, const std::optional<struct stat>& replaced, const std::string& path) {
  const mode_t mode = replaced ? replaced->st_mode & 07777U : new_file_mode();
  if (os::chmod_fd(fd, mode) != 0) throw system_error(path, "setting the mode", errno);
  if (!replaced || (replaced->st_uid == ::geteuid() && replaced->st_gid == ::getegid())) return;
  // Only root may; anybody else's replacement is their own, as with cp -f.
  if (::fchown(fd, replaced->st_uid, replaced->st_gid) != 0 && errno != EPERM)
    throw system_error(path, "setting the owner", errno);
}

void refuse_changed(int folder, const std::string& name, const std::optional<struct stat>& before,
                    const std::string& path) {
  const auto now = entry_state(folder, name, path);
  if (now.has_value() == before.has_value() && (!now || unchanged(*now, *before))) return;
  throw InputError(path, "was changed by another process meanwhile; left as it is");
}

std::string staging_name(const std::string& name) {
  std::string plain = fmt::format(".{}.masque-tmp", name);
  if (plain.size() <= 255) return plain;
  return fmt::format(".{}.masque-tmp", xxh3_of(as_bytes(name)));
}

bool is_cache_entry(const std::string& path) {
  return is_hash_name(base_name(path)) && base_name(folder_of(path)) == "blobs";
}

mode_t new_file_mode() {
  if (const auto mask = shown_umask()) return 0666 & ~*mask;
  const mode_t mask = ::umask(0);
  ::umask(mask);
  return 0666 & ~mask;
}

void refuse_unsafe_target(const std::string& path) {
  const auto info = entry_state(AT_FDCWD, path, path);
  if (!info) return;
  if (S_ISLNK(info->st_mode)) {
    const std::string target = link_target(path);
    const bool cache = is_hash_name(base_name(target));
    throw InputError(path, fmt::format("is a symbolic link to '{}'{}, expected a plain file or a "
                                       "new name for the output",
                                       escape(target), cache ? " in a hash-named cache" : ""));
  }
  if (!S_ISREG(info->st_mode)) {
    throw InputError(path, "is not a regular file, expected a file or a new name for the output");
  }
  if (info->st_nlink > 1) {
    throw InputError(
        path, fmt::format("has {} hard links, expected a file with one name", info->st_nlink));
  }
  if (is_cache_entry(path)) {
    throw InputError(path, "is an entry of a hash-named cache, expected another output");
  }
}

Descriptor open_staging(int folder, const std::string& name, bool as_folder,
                        const std::string& path) {
  const int flags = as_folder ? O_RDONLY | O_DIRECTORY : O_RDWR | O_CREAT;
  const auto give_up = [&](std::string_view action, int error) {
    as_folder ? os::rmdir_at(folder, name.c_str()) : os::unlink_at(folder, name.c_str());
    throw system_error(path, action, error);
  };
  // Somebody else's entry of that name: its kind would only be an error of the system.
  const auto refuse_other_kind = [&] {
    struct stat info = {};
    if (os::stat_at(folder, name.c_str(), info, AT_SYMLINK_NOFOLLOW) != 0) return;
    if (as_folder ? S_ISDIR(info.st_mode) : S_ISREG(info.st_mode)) return;
    throw InputError(
        path, fmt::format("{} blocks the output's temporary {}: remove it",
                          escape(join(folder_of(path), name)), as_folder ? "folder" : "file"));
  };
  for (int attempt = 0; attempt < 20; ++attempt) {
    refuse_other_kind();
    if (as_folder && os::mkdir_at(folder, name.c_str(), 0700) != 0 && errno != EEXIST) {
      throw system_error(path, "writing", errno);
    }
    Descriptor fd(os::open_at(folder, name.c_str(), flags | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (!fd) {
      if (!as_folder) throw system_error(path, "writing", errno);
      give_up("writing", errno);
    }
    if (os::lock_exclusive(fd.get()) != 0) {
      if (errno == EWOULDBLOCK) throw InputError(path, "is being written by another process");
      // A file system without locks: go on unprotected, as every other program does there.
      // (NFS locks only what is open for writing, which a folder never is.)
      const bool no_locks = errno == ENOLCK || errno == EOPNOTSUPP || errno == ENOSYS ||
                            (as_folder && (errno == EBADF || errno == EINVAL));
      if (!no_locks) give_up("locking", errno);
    }
    // Its last user may have renamed or removed it between our opening and locking.
    struct stat mine = {};
    struct stat named = {};
    if (os::stat_fd(fd.get(), mine) != 0) give_up("writing", errno);
    const bool there = os::stat_at(folder, name.c_str(), named, AT_SYMLINK_NOFOLLOW) == 0;
    if (!there && errno != ENOENT) give_up("writing", errno);
    if (!there || !same_file(mine, named)) continue;
    // What somebody else left there, or a second name of another file, is not written into.
    if (as_folder || (mine.st_nlink == 1 && mine.st_uid == ::geteuid())) return fd;
    os::unlink_at(folder, name.c_str());
  }
  throw InputError(path, "is being written by other processes");
}

OutputFile::OutputFile(const std::string& path)
    : path_(path), name_(base_name(path)), temporary_(staging_name(name_)) {
  if (name_.empty() || path.back() == '/') throw InputError(path, "is a folder, expected a file");
  refuse_unsafe_target(path);
  folder_ = open_folder(folder_of(path));
  before_ = entry_state(folder_.get(), name_, path_);
  fd_ = open_staging(folder_.get(), temporary_, false, path_);
  if (os::truncate(fd_.get(), 0) != 0) {
    const int error = errno;
    os::unlink_at(folder_.get(), temporary_.c_str());
    throw system_error(path_, "writing", error);
  }
}

OutputFile::~OutputFile() {
  if (!committed_) os::unlink_at(folder_.get(), temporary_.c_str());
}

void OutputFile::commit() {
  take_mode(fd_.get(), before_, path_);
  // After a failed sync the kernel may have dropped the pages: never tried again.
  if (os::sync(fd_.get()) != 0) throw system_error(path_, "writing to disk", errno);
  refuse_changed(folder_.get(), name_, before_, path_);
  if (os::rename_at(folder_.get(), temporary_.c_str(), name_.c_str()) != 0) {
    throw system_error(path_, "renaming into place", errno);
  }
  committed_ = true;
  if (os::sync(folder_.get()) != 0)
    throw system_error(path_, "the new file is in place, writing its folder to disk", errno);
}

void replace_text(const std::string& path, const std::string& text) {
  OutputFile file(path);
  write_all(file.descriptor(), as_bytes(text), path);
  file.commit();
}

WorkLock::WorkLock(const std::string& path)
    : folder_(open_folder(folder_of(path))),
      name_(staging_name(base_name(path) + ".lock")),
      fd_(open_staging(folder_.get(), name_, false, path)) {}

WorkLock::~WorkLock() {
  // While it is locked: who opens it now sees that it has no name any more, and makes another.
  os::unlink_at(folder_.get(), name_.c_str());
}

}  // namespace masque
