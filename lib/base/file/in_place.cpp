#include "base/file/in_place.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>

#include <fmt/format.h>

#include "base/digest/hash.hpp"
#include "base/error.hpp"
#include "base/file/os.hpp"
#include "base/file/output_file.hpp"
#include "base/file/undo_journal.hpp"
#include "base/thread/interrupt.hpp"

namespace masque {

namespace {

constexpr std::uint64_t kBlock = 512;
constexpr std::uint64_t kBuffer = 1 << 20;
constexpr std::uint64_t kMostTextBytes = 1 << 30;

void read_at(int fd, std::uint64_t offset, MutableBytes out, const std::string& path) {
  if (const int error = read_quietly(fd, offset, out)) throw system_error(path, "reading", error);
}

/// The disk starts at once instead of at the sync: only a hint, so its result does not matter.
void start_writing(int fd, std::uint64_t offset, std::uint64_t size) {
  static_cast<void>(::sync_file_range(fd, static_cast<off_t>(offset), static_cast<off_t>(size),
                                      SYNC_FILE_RANGE_WRITE));
}

/// Descriptors in the order of a plan's files; -1 for those that are not locked.
std::vector<int> descriptors_of(const LockedFiles& files, const UndoPlan& plan) {
  std::vector<int> out;
  for (const UndoFile& file : plan.files) {
    out.push_back(file.kind == UndoKind::kPatched ? files.files()[files.find(file.name)].fd.get()
                                                  : -1);
  }
  return out;
}

/// Takes a change back unless it was finished.
class Undoing {
 public:
  Undoing(const LockedFiles& files, const UndoJournal& journal, std::vector<int> descriptors)
      : files_(files), journal_(journal), descriptors_(std::move(descriptors)) {}
  Undoing(const Undoing&) = delete;
  Undoing& operator=(const Undoing&) = delete;
  ~Undoing() {
    // If this fails the journal stays, and the next one who opens a file is told.
    if (!finished_) roll_back(files_.folder(), journal_, descriptors_);
  }
  void finish() { finished_ = true; }

 private:
  const LockedFiles& files_;
  const UndoJournal& journal_;
  std::vector<int> descriptors_;
  bool finished_ = false;
};

}  // namespace

InPlaceChange::InPlaceChange(const LockedFiles& files)
    : files_(&files), ranges_(files.files().size()) {
  scratch_.reserve(files.files().size());
  for (const LockedFiles::File& file : files.files())
    scratch_.push_back({Descriptor(), staging_name(file.name)});
}

InPlaceChange::~InPlaceChange() {
  for (const Scratch& scratch : scratch_) {
    if (scratch.fd) os::unlink_at(files_->folder(), scratch.name.c_str());
  }
}

void InPlaceChange::add_range(std::size_t file, std::uint64_t offset, std::uint64_t size) {
  Ranges& ranges = ranges_[file];
  std::uint64_t end = offset + size;
  auto next = ranges.upper_bound(offset);
  if (next != ranges.begin()) {
    const auto before = std::prev(next);
    if (before->first + before->second >= offset) {
      offset = before->first;
      end = std::max(end, before->first + before->second);
      next = ranges.erase(before);
    }
  }
  while (next != ranges.end() && next->first <= end) {
    end = std::max(end, next->first + next->second);
    next = ranges.erase(next);
  }
  ranges.emplace(offset, end - offset);
}

void InPlaceChange::write(std::size_t file, std::uint64_t offset, Bytes bytes) {
  const LockedFiles::File& target = files_->files()[file];
  const std::string path = join(files_->path(), target.name);
  const auto size = static_cast<std::uint64_t>(target.info.st_size);
  if (offset > size || bytes.size() > size - offset)
    throw InputError(path, fmt::format("has {} bytes, fewer than when it was opened", size));
  {
    const std::lock_guard<std::mutex> guard(mutex_);
    Scratch& scratch = scratch_[file];
    if (!scratch.fd) {
      scratch.fd = open_staging(files_->folder(), scratch.name, false, path);
      if (os::truncate(scratch.fd.get(), 0) != 0) throw system_error(path, "writing", errno);
    }
  }
  thread_local std::vector<std::byte> old;
  old.resize(bytes.size());
  read_at(target.fd.get(), offset, old, path);
  for (std::size_t at = 0; at < bytes.size();) {
    // A run of blocks, aligned in the file, that all differ or all do not.
    const auto block_at = [&](std::size_t place) {
      const std::uint64_t room = kBlock - (offset + place) % kBlock;
      return std::min<std::uint64_t>(room, bytes.size() - place);
    };
    const auto differs = [&](std::size_t place) {
      return std::memcmp(&bytes[place], &old[place], block_at(place)) != 0;
    };
    const std::size_t begin = at;
    const bool changed = differs(at);
    while (at < bytes.size() && differs(at) == changed) at += block_at(at);
    const std::uint64_t first = offset + begin;
    const std::uint64_t count = at - begin;
    bool written = changed;
    if (!written) {  // back to what it was, where an earlier write left something else
      const std::lock_guard<std::mutex> guard(mutex_);
      const auto next = ranges_[file].lower_bound(first + count);
      written =
          next != ranges_[file].begin() && std::prev(next)->first + std::prev(next)->second > first;
    }
    if (!written) continue;
    write_at(scratch_[file].fd.get(), first, bytes.subspan(begin, count), path);
    const std::lock_guard<std::mutex> guard(mutex_);
    add_range(file, first, count);
  }
}

void InPlaceChange::set_text(const std::string& name, std::string text) {
  const std::string path = join(files_->path(), name);
  refuse_unsafe_target(path);
  if (exists(path) && !old_texts_.contains(name)) {
    old_texts_[name] = InputFile::open_in(files_->folder(), name, path).read_all(kMostTextBytes);
  }
  texts_.insert_or_assign(name, std::move(text));
}

void InPlaceChange::read(std::size_t file, std::uint64_t offset, MutableBytes out) const {
  const LockedFiles::File& target = files_->files()[file];
  const std::string path = join(files_->path(), target.name);
  read_at(target.fd.get(), offset, out, path);
  const Ranges& ranges = ranges_[file];
  auto range = ranges.upper_bound(offset);
  if (range != ranges.begin()) --range;
  for (; range != ranges.end() && range->first < offset + out.size(); ++range) {
    const std::uint64_t begin = std::max(range->first, offset);
    const std::uint64_t end = std::min(range->first + range->second, offset + out.size());
    if (begin < end)
      read_at(scratch_[file].fd.get(), begin, out.subspan(begin - offset, end - begin), path);
  }
}

std::vector<std::pair<std::uint64_t, std::uint64_t>> InPlaceChange::ranges(std::size_t file) const {
  return {ranges_[file].begin(), ranges_[file].end()};
}

std::uint64_t InPlaceChange::bytes() const {
  std::uint64_t sum = 0;
  for (const Ranges& ranges : ranges_) {
    for (const auto& [offset, size] : ranges) sum += size;
  }
  return sum;
}

void InPlaceChange::check_unchanged() const {
  for (std::size_t i = 0; i < ranges_.size(); ++i) {
    const LockedFiles::File& file = files_->files()[i];
    const std::string path = join(files_->path(), file.name);
    struct stat now = {};
    if (os::stat_at(files_->folder(), file.name.c_str(), now, AT_SYMLINK_NOFOLLOW) != 0)
      throw system_error(path, "reading its status", errno);
    if (now.st_ino != file.info.st_ino || now.st_dev != file.info.st_dev ||
        now.st_size != file.info.st_size || now.st_mtim.tv_sec != file.info.st_mtim.tv_sec ||
        now.st_mtim.tv_nsec != file.info.st_mtim.tv_nsec) {
      throw InputError(path, "was changed by another process meanwhile; left as it is");
    }
  }
}

UndoPlan InPlaceChange::plan() const {
  UndoPlan plan;
  for (std::size_t i = 0; i < ranges_.size(); ++i) {
    // The first one always: by its name and lock the journal is found.
    if (ranges_[i].empty() && i != 0) continue;
    const LockedFiles::File& file = files_->files()[i];
    const auto number = static_cast<std::uint32_t>(plan.files.size());
    plan.files.push_back({.name = file.name,
                          .kind = UndoKind::kPatched,
                          .inode = file.info.st_ino,
                          .size = static_cast<std::uint64_t>(file.info.st_size),
                          .new_digest = {}});
    for (const auto& [offset, size] : ranges_[i]) plan.ranges.push_back({number, offset, size});
  }
  for (const auto& [name, text] : texts_) {
    const auto old = old_texts_.find(name);
    const bool there = old != old_texts_.end();
    if (there && old->second == text) continue;
    const auto number = static_cast<std::uint32_t>(plan.files.size());
    const std::uint64_t size = there ? old->second.size() : 0;
    plan.files.push_back({.name = name,
                          .kind = there ? UndoKind::kReplaced : UndoKind::kCreated,
                          .inode = 0,
                          .size = size,
                          .new_digest = xxh3_of(as_bytes(text))});
    if (there) plan.ranges.push_back({number, 0, size});
  }
  return plan;
}

void InPlaceChange::apply(const UndoPlan& plan) {
  std::vector<std::byte> buffer(kBuffer);
  for (const UndoRange& range : plan.ranges) {
    const UndoFile& file = plan.files[range.file];
    if (file.kind != UndoKind::kPatched) continue;
    const std::size_t at = files_->find(file.name);
    const std::string path = join(files_->path(), file.name);
    for (std::uint64_t done = 0; done < range.size; done += kBuffer) {
      throw_if_interrupted();
      const MutableBytes part = MutableBytes(buffer).first(std::min(kBuffer, range.size - done));
      read_at(scratch_[at].fd.get(), range.offset + done, part, path);
      write_at(files_->files()[at].fd.get(), range.offset + done, part, path);
      start_writing(files_->files()[at].fd.get(), range.offset + done, part.size());
    }
  }
  bool names_change = false;
  for (const UndoFile& file : plan.files) {
    const std::string path = join(files_->path(), file.name);
    if (file.kind == UndoKind::kPatched) {
      // After a failed sync the kernel may have dropped the pages: never tried again.
      if (os::sync(files_->files()[files_->find(file.name)].fd.get()) != 0)
        throw system_error(path, "writing to disk", errno);
      continue;
    }
    names_change = true;
    if (const int error =
            replace_quietly(files_->folder(), file.name, as_bytes(texts_.at(file.name))))
      throw system_error(path, "writing", error);
  }
  // Names before the journal goes: a disk may keep later changes of a folder and lose earlier ones.
  if (names_change && os::sync(files_->folder()) != 0)
    throw system_error(files_->path(), "writing its folder to disk", errno);
}

void InPlaceChange::commit(const std::function<void()>& check) {
  const UndoPlan plan = this->plan();
  check_unchanged();
  if (plan.ranges.empty() && plan.files.size() == 1) return;
  // Made before the journal is: from then on nothing may fail without taking it back.
  std::vector<int> descriptors = descriptors_of(*files_, plan);
  const UndoJournal journal = write_undo_journal(
      files_->folder(), files_->path(), plan,
      [&](const UndoRange& range, std::uint64_t offset, MutableBytes out) {
        const UndoFile& file = plan.files[range.file];
        const std::string path = join(files_->path(), file.name);
        if (file.kind == UndoKind::kPatched) {
          throw_if_interrupted();
          read_at(files_->files()[files_->find(file.name)].fd.get(), range.offset + offset, out,
                  path);
        } else {
          std::memcpy(out.data(), old_texts_.at(file.name).data() + offset, out.size());
        }
      });
  Undoing undoing(*files_, journal, std::move(descriptors));
  apply(plan);
  if (check) check();
  throw_if_interrupted();
  if (os::unlink_at(files_->folder(), journal.name.c_str()) != 0)
    throw system_error(join(files_->path(), journal.name), "removing", errno);
  undoing.finish();
  if (os::sync(files_->folder()) != 0)
    throw system_error(files_->path(), "the change is made, writing the folder to disk", errno);
}

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
  // A journal that has not got its name: its change had not begun. Whoever writes one holds the
  // lock of the file that it is called after.
  for (const std::string& name : names) remove_leftover(journal_name(name));
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
