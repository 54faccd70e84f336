#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <thread>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/in_place.hpp"
#include "base/interrupt.hpp"
#include "base/os.hpp"
#include "base/output_file.hpp"
#include "base/roll_back.hpp"

namespace masque {

namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds kPause{20};

}  // namespace

LockedFiles::LockedFiles(const std::string& folder, std::vector<std::string> names,
                         double wait_seconds)
    : path_(folder), wait_seconds_(wait_seconds), folder_(open_folder(folder)) {
  // In one order for everybody, so that two who wait do not wait for each other.
  std::ranges::sort(names);
  names.erase(std::unique(names.begin(), names.end()), names.end());
  for (const std::string& name : names) lock(name);
  recover();
  for (File& file : files_) {
    if (os::stat_fd(file.fd.get(), file.info) != 0)
      throw system_error(join(path_, file.name), "reading its status", errno);
  }
}

std::size_t LockedFiles::find(const std::string& name) const {
  const auto found = std::ranges::find(files_, name, &File::name);
  MASQUE_CHECK(found != files_.end());
  return static_cast<std::size_t>(found - files_.begin());
}

void LockedFiles::lock(const std::string& name) {
  const std::string path = join(path_, name);
  refuse_unsafe_target(path);
  const Clock::time_point end = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                                   std::chrono::duration<double>(wait_seconds_));
  for (int replaced = 0; replaced < 3;) {
    Descriptor fd(
        os::open_at(folder_.get(), name.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
    if (!fd) throw system_error(path, "opening for writing", errno);
    if (os::lock_exclusive(fd.get()) != 0) {
      const int error = errno;
      if (error == ENOLCK || error == EOPNOTSUPP)
        throw InputError(path, "lies on a file system without locks: not changed in place");
      if (error != EWOULDBLOCK && error != EINTR) throw system_error(path, "locking", error);
      throw_if_interrupted();
      if (error == EWOULDBLOCK && Clock::now() >= end)
        throw InputError(path, fmt::format("is being changed by another process ({} SECONDS waits)",
                                           field("wait")));
      std::this_thread::sleep_for(kPause);
      continue;
    }
    // Somebody may have replaced it between our opening and locking.
    struct stat mine = {};
    struct stat named = {};
    if (os::stat_fd(fd.get(), mine) != 0) throw system_error(path, "reading its status", errno);
    const bool there = os::stat_at(folder_.get(), name.c_str(), named, AT_SYMLINK_NOFOLLOW) == 0;
    if (!there && errno != ENOENT) throw system_error(path, "reading its status", errno);
    if (there && mine.st_dev == named.st_dev && mine.st_ino == named.st_ino) {
      files_.push_back({name, std::move(fd), mine});
      remove_leftover(name);
      return;
    }
    ++replaced;
  }
  throw InputError(path, "is being replaced by other processes");
}

void LockedFiles::remove_leftover(const std::string& name) const {
  const std::string temporary = staging_name(name);
  if (!exists(join(path_, temporary))) return;
  const Descriptor fd = open_staging(folder_.get(), temporary, false, join(path_, name));
  if (os::unlink_at(folder_.get(), temporary.c_str()) != 0 && errno != ENOENT)
    throw system_error(join(path_, temporary), "removing", errno);
}

void LockedFiles::recover() {
  std::vector<std::string> names;
  for (const File& file : files_) names.push_back(file.name);
  // A journal that is not complete: its change had not begun. Whoever writes one holds the lock of
  // the file that it is called after.
  for (const std::string& name : names) {
    const std::string journal = journal_name(name);
    if (!exists(join(path_, journal)) || read_undo_journal(folder_.get(), path_, journal)) continue;
    if (os::unlink_at(folder_.get(), journal.c_str()) != 0 && errno != ENOENT)
      throw system_error(join(path_, journal), "removing", errno);
  }
  for (const UndoJournal& journal : unfinished_changes(folder_.get(), path_, names)) {
    for (const UndoFile& file : journal.plan.files) {
      const bool locked = std::ranges::find(files_, file.name, &File::name) != files_.end();
      if (file.kind == UndoKind::kPatched && !locked) lock(file.name);
    }
    // While we waited for another file's lock its holder may have done it.
    if (!exists(join(path_, journal.name))) continue;
    std::vector<int> descriptors;
    for (const UndoFile& file : journal.plan.files) {
      const bool patched = file.kind == UndoKind::kPatched;
      descriptors.push_back(patched ? files_[find(file.name)].fd.get() : -1);
    }
    check_identity(folder_.get(), path_, journal, descriptors);
    if (const int error = roll_back(folder_.get(), journal, descriptors))
      throw system_error(join(path_, journal.name), "taking back the change", error);
    for (const UndoFile& file : journal.plan.files) recovered_.push_back(file.name);
  }
}

}  // namespace masque
