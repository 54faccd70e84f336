#include "base/output_group.hpp"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <span>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/os.hpp"
#include "base/output_file.hpp"

namespace masque {

OutputGroup::OutputGroup(const std::string& path, Existing existing)
    : path_(path),
      name_(base_name(path)),
      existing_(existing),
      temporary_(staging_name(name_)),
      kept_(join(temporary_, temporary_)),  // no file of the group can have this name
      staging_path_(join(folder_of(path), temporary_)) {
  if (name_.empty() || path.back() == '/') throw InputError(path, "is a folder, expected a file");
  refuse_unsafe_target(path);
  if (existing == Existing::kRefuse) refuse_existing();
  folder_ = open_folder(folder_of(path));
  staging_ = open_staging(folder_.get(), temporary_, true, path_);
  put_back_of_killed();
}

OutputGroup::~OutputGroup() {
  if (committed_) return;
  if (aside_) {
    if (!put_back()) return;  // the next one tries again
  } else {
    for (const File& file : files_) {
      if (file.placed) os::unlink_at(folder_.get(), file.name.c_str());
    }
  }
  remove_staging();
}

/// By the names that are known, which takes no memory and no look; what a killed run left there, by
/// looking.
void OutputGroup::remove_staging() noexcept {
  if (aside_) {
    for (const File& file : files_) {
      file.before ? os::unlink_at(folder_.get(), file.kept.c_str())
                  : os::rmdir_at(folder_.get(), file.kept.c_str());
    }
    os::rmdir_at(folder_.get(), kept_.c_str());
  }
  for (const File& file : files_) os::unlink_at(folder_.get(), file.staged.c_str());
  if (os::rmdir_at(folder_.get(), temporary_.c_str()) != 0) remove_tree(folder_.get(), temporary_);
}

void OutputGroup::refuse_existing() const {
  if (!exists(path_)) return;
  throw InputError(path_,
                   "exists, and with its other files cannot be replaced in one step: expected a "
                   "new name");
}

int OutputGroup::create(const std::string& name) {
  const std::string path = path_of(name);
  File file{.name = name,
            .staged = join(temporary_, name),
            .kept = join(kept_, name),
            .fd = Descriptor(),
            .before = {}};
  // What a killed run left. First: after a loss of power a file may have this name and its own,
  // too.
  if (os::unlink_at(staging_.get(), name.c_str()) != 0 && errno != ENOENT)
    throw system_error(path, "writing", errno);
  refuse_unsafe_target(path);
  file.before = entry_state(folder_.get(), name, path);
  file.fd = Descriptor(os::open_at(staging_.get(), name.c_str(),
                                   O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666));
  if (!file.fd) throw system_error(path, "writing", errno);
  files_.push_back(std::move(file));
  return files_.back().fd.get();
}

void OutputGroup::move(const std::string& from, const std::string& to,
                       const std::string& name) const {
  if (os::rename_at(folder_.get(), from.c_str(), to.c_str()) != 0)
    throw system_error(path_of(name), "renaming into place", errno);
}

void OutputGroup::sync(int folder) const {
  if (os::sync(folder) != 0) throw system_error(path_, "writing its folder to disk", errno);
}

void OutputGroup::place(File& file) const {
  move(file.staged, file.name, file.name);
  file.placed = true;
}

/// What is replaced goes into a folder of the staging folder: the file itself first, so that nobody
/// reads it with companions of another one, and with all names on the disk before the next step. A
/// companion that was not there is a folder there. Until the file itself is back or replaced, that
/// is the journal from which put_back() works; it takes no memory, since there may be none.
void OutputGroup::set_aside() {
  if (os::mkdir_at(folder_.get(), kept_.c_str(), 0700) != 0)
    throw system_error(path_, "writing", errno);
  const auto companions = std::span(files_).first(files_.size() - 1);
  for (const File& file : companions) {
    if (!file.before && os::mkdir_at(folder_.get(), file.kept.c_str(), 0700) != 0)
      throw system_error(path_of(file.name), "writing", errno);
  }
  const Descriptor kept(
      os::open_at(folder_.get(), kept_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!kept) throw system_error(path_, "writing its folder to disk", errno);
  sync(kept.get());
  sync(staging_.get());
  sync(folder_.get());
  aside_ = true;
  move(name_, files_.back().kept, name_);
  sync(folder_.get());
  for (const File& file : companions) {
    if (file.before) move(file.name, file.kept, file.name);
  }
  sync(folder_.get());
}

bool OutputGroup::put_back() noexcept {
  const auto main = std::ranges::find(files_, name_, &File::name);
  struct stat info = {};
  if (main == files_.end() ||
      os::stat_at(folder_.get(), main->kept.c_str(), info, AT_SYMLINK_NOFOLLOW) != 0)
    return errno == ENOENT || main == files_.end();
  // It has not gone for good, so the others had not begun to; or it is the new one.
  if (os::stat_at(folder_.get(), name_.c_str(), info, AT_SYMLINK_NOFOLLOW) == 0) return true;
  for (const File& file : files_) {
    if (file.name == name_) continue;
    const int status = file.before
                           ? os::rename_at(folder_.get(), file.kept.c_str(), file.name.c_str())
                           : os::unlink_at(folder_.get(), file.name.c_str());
    if (status != 0 && errno != ENOENT) return false;
  }
  return os::sync(folder_.get()) == 0 &&
         os::rename_at(folder_.get(), main->kept.c_str(), name_.c_str()) == 0 &&
         os::sync(folder_.get()) == 0;
}

/// Takes back what a run had set aside when it was killed or the power was lost.
void OutputGroup::put_back_of_killed() {
  const Descriptor kept(
      os::open_at(folder_.get(), kept_.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!kept) return;
  const auto failed = [&] {
    return InputError(
        path_,
        fmt::format("files that an earlier run saved in {} cannot be restored: move them away",
                    escape(staging_path_)));
  };
  std::vector<std::string> names;
  if (read_entries(kept.get(), names) != 0) throw failed();
  for (const std::string& name : names) {
    File file{.name = name,
              .staged = {},
              .kept = join(kept_, name),
              .fd = Descriptor(),
              .before = entry_state(kept.get(), name, path_of(name))};
    if (file.before && S_ISDIR(file.before->st_mode)) file.before.reset();
    files_.push_back(std::move(file));
  }
  if (!put_back()) throw failed();
  files_.clear();
  remove_tree(folder_.get(), kept_);
}

void OutputGroup::commit() {
  std::stable_partition(files_.begin(), files_.end(),
                        [&](const File& file) { return file.name != name_; });
  MASQUE_CHECK(!files_.empty() && files_.back().name == name_);
  for (const File& file : files_) {
    take_mode(file.fd.get(), file.before, path_of(file.name));
    // After a failed sync the kernel may have dropped the pages: never tried again.
    if (os::sync(file.fd.get()) != 0)
      throw system_error(path_of(file.name), "writing to disk", errno);
  }
  if (existing_ == Existing::kRefuse) refuse_existing();
  for (const File& file : files_)
    refuse_changed(folder_.get(), file.name, file.before, path_of(file.name));
  if (files_.back().before) set_aside();
  for (File& file : std::span(files_).first(files_.size() - 1)) place(file);
  // A disk may keep later changes of a folder and lose earlier ones.
  sync(folder_.get());
  place(files_.back());
  committed_ = true;
  // What was replaced goes once nothing of it can come back.
  const int error = os::sync(folder_.get()) == 0 ? 0 : errno;
  if (error == 0 || !aside_) remove_staging();
  if (error == 0) return;
  throw system_error(path_,
                     aside_ ? fmt::format("the old file is kept in {}, writing the names to disk",
                                          escape(staging_path_))
                            : "the new file is in place, writing its folder to disk",
                     error);
}

}  // namespace masque
