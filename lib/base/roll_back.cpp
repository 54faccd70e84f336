#include "base/roll_back.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <memory>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/hash.hpp"
#include "base/os.hpp"
#include "base/output_file.hpp"
#include "base/shortage.hpp"

namespace masque {

namespace {

constexpr std::uint64_t kMostTextBytes = 1 << 30;  ///< of a file that is replaced as a whole

int write_quietly(int fd, std::uint64_t offset, Bytes bytes) noexcept {
  while (!bytes.empty()) {
    const ssize_t count = os::pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return count == 0 ? ENOSPC : errno;
    offset += static_cast<std::uint64_t>(count);
    bytes = bytes.subspan(static_cast<std::size_t>(count));
  }
  return 0;
}

/// The saved bytes of one range back into a patched file.
int put_back(const UndoJournal& journal, const UndoRange& range, std::uint64_t from,
             int to) noexcept {
  std::array<std::byte, 1 << 13> buffer;  // on the stack: there may be no memory left
  for (std::uint64_t at = 0; at < range.size; at += buffer.size()) {
    const MutableBytes part =
        MutableBytes(buffer).first(std::min<std::uint64_t>(buffer.size(), range.size - at));
    if (const int error = read_quietly(journal.file.descriptor(), from + at, part)) return error;
    if (const int error = write_quietly(to, range.offset + at, part)) return error;
  }
  return 0;
}

/// The content of an entry; nothing if there is none. `error` ← what else went wrong, or 0.
std::optional<std::vector<std::byte>> content_of(int folder, const std::string& name, int& error) {
  error = 0;
  const Descriptor fd(
      os::open_at(folder, name.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  struct stat info = {};
  if (!fd || os::stat_fd(fd.get(), info) != 0) {
    error = errno == ENOENT ? 0 : errno;
    return std::nullopt;
  }
  if (!S_ISREG(info.st_mode) || static_cast<std::uint64_t>(info.st_size) > kMostTextBytes) {
    error = EINVAL;
    return std::nullopt;
  }
  std::vector<std::byte> content(static_cast<std::size_t>(info.st_size));
  error = read_quietly(fd.get(), 0, content);
  return error == 0 ? std::optional(std::move(content)) : std::nullopt;
}

int restore_text(int folder, const UndoJournal& journal, const UndoRange& range,
                 std::uint64_t from) {
  std::vector<std::byte> old(range.size);
  if (const int error = read_quietly(journal.file.descriptor(), from, old)) return error;
  const std::string& name = journal.plan.files[range.file].name;
  int error = 0;
  const auto now = content_of(folder, name, error);
  if (error != 0 || (now && *now == old)) return error;
  return replace_quietly(folder, name, old);
}

/// Names in a folder that may be journals; just those of `expected` where it may not be listed.
std::vector<std::string> journal_names(int folder, const std::string& path,
                                       std::span<const std::string> expected) {
  std::vector<std::string> names;
  const int fd = os::open_at(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0 && errno == EACCES) {
    for (const std::string& name : expected) names.push_back(journal_name(name));
    return names;
  }
  const std::unique_ptr<DIR, int (*)(DIR*)> stream(fd < 0 ? nullptr : ::fdopendir(fd), ::closedir);
  if (!stream) {
    const int error = errno;
    if (fd >= 0) ::close(fd);
    throw system_error(path, "reading", error);
  }
  errno = 0;
  while (const dirent* entry = ::readdir(stream.get())) {
    if (is_journal_name(entry->d_name)) names.emplace_back(entry->d_name);
    errno = 0;
  }
  if (errno != 0) throw system_error(path, "reading", errno);
  std::ranges::sort(names);
  return names;
}

int roll_all_back(int folder, const UndoJournal& journal, std::span<const int> descriptors);
int replace(int folder, const std::string& name, Bytes content);

}  // namespace

int roll_back(int folder, const UndoJournal& journal, std::span<const int> descriptors) noexcept {
  return errno_of([&] { return roll_all_back(folder, journal, descriptors); });
}

int replace_quietly(int folder, const std::string& name, Bytes content) noexcept {
  return errno_of([&] { return replace(folder, name, content); });
}

int read_quietly(int fd, std::uint64_t offset, MutableBytes out) noexcept {
  while (!out.empty()) {
    const ssize_t count = os::pread(fd, out.data(), out.size(), static_cast<off_t>(offset));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return count == 0 ? EIO : errno;
    offset += static_cast<std::uint64_t>(count);
    out = out.subspan(static_cast<std::size_t>(count));
  }
  return 0;
}

namespace {

int replace(int folder, const std::string& name, Bytes content) {
  const std::string temporary = staging_name(name);
  const auto write = [&]() -> int {
    const Descriptor fd(
        os::open_at(folder, temporary.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (!fd || os::truncate(fd.get(), 0) != 0) return errno;
    if (const int error = write_quietly(fd.get(), 0, content)) return error;
    struct stat before = {};
    const bool there = os::stat_at(folder, name.c_str(), before, AT_SYMLINK_NOFOLLOW) == 0;
    if (!there && errno != ENOENT) return errno;
    if (os::chmod_fd(fd.get(), there ? before.st_mode & 07777U : new_file_mode()) != 0)
      return errno;
    // Only root may; anybody else's replacement is their own.
    if (there && (before.st_uid != ::geteuid() || before.st_gid != ::getegid()) &&
        ::fchown(fd.get(), before.st_uid, before.st_gid) != 0 && errno != EPERM)
      return errno;
    if (os::sync(fd.get()) != 0) return errno;
    return os::rename_at(folder, temporary.c_str(), name.c_str()) == 0 ? 0 : errno;
  };
  const int error = write();
  if (error != 0) os::unlink_at(folder, temporary.c_str());
  return error;
}

int roll_all_back(int folder, const UndoJournal& journal, std::span<const int> descriptors) {
  std::uint64_t from = journal.data_begin;
  bool names_change = false;
  for (const UndoRange& range : journal.plan.ranges) {
    const bool patched = journal.plan.files[range.file].kind == UndoKind::kPatched;
    const int error = patched ? put_back(journal, range, from, descriptors[range.file])
                              : restore_text(folder, journal, range, from);
    if (error != 0) return error;
    from += range.size;
  }
  for (std::size_t i = 0; i < journal.plan.files.size(); ++i) {
    const UndoFile& file = journal.plan.files[i];
    if (file.kind == UndoKind::kPatched && os::sync(descriptors[i]) != 0) return errno;
    if (file.kind == UndoKind::kPatched) continue;
    names_change = true;
    const std::string temporary = staging_name(file.name);  // if its replacement was cut short
    if (os::unlink_at(folder, temporary.c_str()) != 0 && errno != ENOENT) return errno;
    if (file.kind == UndoKind::kCreated && os::unlink_at(folder, file.name.c_str()) != 0 &&
        errno != ENOENT)
      return errno;
  }
  // Names before the journal goes: a disk may keep later changes of a folder and lose earlier ones.
  if (names_change && os::sync(folder) != 0) return errno;
  if (os::unlink_at(folder, journal.name.c_str()) != 0 && errno != ENOENT) return errno;
  return os::sync(folder) == 0 ? 0 : errno;
}

}  // namespace

void check_identity(int folder, const std::string& path, const UndoJournal& journal,
                    std::span<const int> descriptors) {
  const std::string where = join(path, journal.name);
  const auto refuse = [&](const std::string& name) {
    throw InputError(where, fmt::format("'{}' is not the file that this journal would restore: "
                                        "remove the journal if the file is correct",
                                        escape(name)));
  };
  for (std::size_t i = 0; i < journal.plan.files.size(); ++i) {
    const UndoFile& file = journal.plan.files[i];
    if (file.kind == UndoKind::kPatched) {
      // Not the device: after a loss of power it may have another number.
      struct stat info = {};
      if (os::stat_fd(descriptors[i], info) != 0)
        throw system_error(join(path, file.name), "reading its status", errno);
      if (info.st_ino != file.inode || static_cast<std::uint64_t>(info.st_size) != file.size)
        refuse(file.name);
      continue;
    }
    int error = 0;
    const auto now = content_of(folder, file.name, error);
    if (error != 0) throw system_error(join(path, file.name), "reading", error);
    if (!now && file.kind == UndoKind::kCreated) continue;
    if (now && xxh3_of(*now) == file.new_digest) continue;
    if (file.kind == UndoKind::kReplaced && now && now->size() == file.size) {
      std::uint64_t from = journal.data_begin;
      std::vector<std::byte> old(file.size);
      for (const UndoRange& range : journal.plan.ranges) {
        if (range.file == i) journal.file.read(from, MutableBytes(old).first(range.size));
        from += range.size;
      }
      if (*now == old) continue;
    }
    refuse(file.name);
  }
}

std::vector<UndoJournal> unfinished_changes(int folder, const std::string& path,
                                            std::span<const std::string> names) {
  std::vector<UndoJournal> found;
  for (const std::string& name : journal_names(folder, path, names)) {
    auto journal = read_undo_journal(folder, path, name);
    const auto concerns = [&](const UndoFile& file) {
      return std::ranges::find(names, file.name) != names.end();
    };
    if (journal && std::ranges::any_of(journal->plan.files, concerns))
      found.push_back(*std::move(journal));
  }
  return found;
}

void refuse_unfinished(const std::string& folder, std::span<const std::string> names) {
  // Without leave to list it, too.
  const Descriptor opened(os::open_at(AT_FDCWD, folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!opened) refuse_folder(folder, errno);
  const auto found = unfinished_changes(opened.get(), folder, names);
  if (found.empty()) return;
  const std::string file = join(folder, found[0].plan.files[0].name);
  const Descriptor fd(os::open_at(AT_FDCWD, file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (fd && os::lock_exclusive(fd.get()) != 0 && errno == EWOULDBLOCK)
    throw InputError(file, "is being changed in place by another process");
  throw InputError(
      file, fmt::format("a change in place was interrupted: `embed-fix recover {}` undoes it",
                        escape(file)));
}

}  // namespace masque
