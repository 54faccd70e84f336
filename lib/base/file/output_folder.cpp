#include "base/file/output_folder.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <memory>
#include <span>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/file/os.hpp"
#include "base/file/output_file.hpp"
#include "base/file/undo_journal.hpp"
#include "base/thread/shortage.hpp"

namespace masque {

int read_entries(int folder, std::vector<std::string>& names) {
  const int fd = os::open_at(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return errno;
  const std::unique_ptr<DIR, int (*)(DIR*)> stream(::fdopendir(fd), ::closedir);
  if (!stream) {
    const int error = errno;
    ::close(fd);
    return error;
  }
  errno = 0;
  while (const dirent* entry = ::readdir(stream.get())) {
    std::string name = entry->d_name;
    if (name != "." && name != "..") names.push_back(std::move(name));
    errno = 0;
  }
  const int error = errno;
  std::sort(names.begin(), names.end());
  return error;
}

namespace {

constexpr int kMaxDepth = 32;

/// The names in a folder. Throws InputError naming `path`.
std::vector<std::string> entries_of(int folder, const std::string& path) {
  std::vector<std::string> names;
  if (const int error = read_entries(folder, names)) throw system_error(path, "reading", error);
  return names;
}

// Best effort: what cannot be read or removed stays.
void remove_contents(int folder, int depth) noexcept {
  std::vector<std::string> names;
  errno_of([&] { return read_entries(folder, names); });
  for (const std::string& name : names) {
    if (os::unlink_at(folder, name.c_str()) == 0) continue;
    if ((errno != EISDIR && errno != EPERM) || depth >= kMaxDepth) continue;
    const Descriptor child(
        os::open_at(folder, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (child) remove_contents(child.get(), depth + 1);
    os::rmdir_at(folder, name.c_str());
  }
}

void list_into(int folder, const std::string& path, const std::string& prefix, int depth,
               std::vector<std::string>& out, std::vector<std::string>* left_out) {
  if (depth >= kMaxDepth) throw InputError(path, "has folders nested too deeply");
  for (const std::string& name : entries_of(folder, join(path, prefix))) {
    if (name.ends_with(".masque-tmp") || is_journal_name(name)) continue;
    const std::string relative = prefix.empty() ? name : join(prefix, name);
    struct stat own = {};
    struct stat info = {};
    if (os::stat_at(folder, name.c_str(), own, AT_SYMLINK_NOFOLLOW) != 0) {
      throw system_error(join(path, relative), "reading", errno);
    }
    const bool link = S_ISLNK(own.st_mode);
    const bool dangling = link && os::stat_at(folder, name.c_str(), info, 0) != 0;
    if (!link) info = own;
    if (!dangling && S_ISREG(info.st_mode)) {
      out.push_back(relative);
    } else if (!link && S_ISDIR(info.st_mode)) {
      const Descriptor child(
          os::open_at(folder, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
      if (!child) throw system_error(join(path, relative), "reading", errno);
      list_into(child.get(), path, relative, depth + 1, out, left_out);
    } else if (left_out != nullptr) {
      left_out->push_back(relative);
    }
  }
}

bool is_weights(const std::string& name) {
  return name.ends_with(".safetensors") || name == "model.safetensors.index.json";
}

/// Where the old folder of that name is while a file system that cannot exchange two folders gives
/// the name to the new one.
std::string old_name(const std::string& name) { return staging_name(name + ".old"); }

/// The path without links, "." and ".."; of what does not exist, as it is.
std::string real_path(const std::string& path) {
  const std::unique_ptr<char, void (*)(void*)> resolved(::realpath(path.c_str(), nullptr),
                                                        std::free);
  return resolved ? resolved.get() : path;
}

/// Where a Hugging Face cache keeps the files of the snapshot that `folder`, a real path with "/"
/// at its end, is or lies in: models--OWNER--NAME/blobs/. Empty if it is no snapshot.
std::string blobs_of(const std::string& folder) {
  constexpr std::string_view kSnapshots = "/snapshots/";
  const std::size_t at = folder.rfind(kSnapshots);
  if (at == std::string::npos) return {};
  const std::string repository = folder.substr(0, at);
  const bool is_snapshot =
      folder.size() > at + kSnapshots.size() && base_name(repository).starts_with("models--");
  return is_snapshot ? repository + "/blobs/" : std::string();
}

}  // namespace

void remove_tree(int folder, const std::string& name) noexcept {
  {
    const Descriptor child(
        os::open_at(folder, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (child) remove_contents(child.get(), 0);
  }
  os::rmdir_at(folder, name.c_str());
}

bool is_taken(const std::string& path) {
  return exists(path) && !(is_folder(path) && entries_of(open_folder(path).get(), path).empty());
}

std::vector<std::string> list_files(const std::string& path, std::vector<std::string>* left_out) {
  std::vector<std::string> out;
  list_into(open_folder(path).get(), path, "", 0, out, left_out);
  std::sort(out.begin(), out.end());
  return out;
}

std::vector<std::string> links_outside(const std::string& folder,
                                       const std::vector<std::string>& names) {
  const std::string inside = real_path(folder) + "/";
  const std::string blobs = blobs_of(inside);
  std::vector<std::string> out;
  for (const std::string& name : names) {
    const std::string target = real_path(join(folder, name));
    const bool in_cache = !blobs.empty() && target.starts_with(blobs);
    if (target.starts_with(inside) || in_cache || is_cache_entry(target)) continue;
    out.push_back(name);
  }
  return out;
}

void restore_folder(const std::string& path) {
  const std::string name = base_name(path);
  if (exists(path) || !exists(join(folder_of(path), old_name(name)))) return;
  const Descriptor parent = open_folder(folder_of(path));
  if (os::rename_at(parent.get(), old_name(name).c_str(), name.c_str()) != 0)
    throw system_error(path, "giving it its name back", errno);
}

OutputFolder::OutputFolder(const std::string& path, Existing existing, const std::string& input)
    : path_(path), name_(base_name(path)), temporary_(staging_name(name_)) {
  if (name_.empty() || name_ == "/" || name_ == "." || name_ == "..") {
    throw InputError(path, "is not a name for a new folder");
  }
  parent_ = open_folder(folder_of(path));
  restore_folder(path);
  struct stat info = {};
  if (os::stat_at(parent_.get(), name_.c_str(), info, AT_SYMLINK_NOFOLLOW) == 0) {
    if (!S_ISDIR(info.st_mode)) throw InputError(path, "exists, expected a new folder");
    const auto names = entries_of(open_folder(path).get(), path);
    replaces_ = !names.empty();
    if (replaces_ && existing == Existing::kRefuse) {
      throw InputError(
          path, fmt::format("exists and is not empty, expected a new folder ({} replaces it)",
                            field("force")));
    }
    if (replaces_ && !input.empty() &&
        (real_path(input) + "/").starts_with(real_path(path) + "/")) {
      throw InputError(path, "is or contains the input: not replaced");
    }
  } else if (errno != ENOENT) {
    throw system_error(path, "reading the status of the output", errno);
  }
  staging_ = open_staging(parent_.get(), temporary_, true, path_);
  remove_contents(staging_.get(), 0);  // what a killed run left
}

OutputFolder::~OutputFolder() {
  if (!committed_) remove_tree(parent_.get(), temporary_);
}

std::string OutputFolder::staging_path() const { return join(folder_of(path_), temporary_); }

Descriptor OutputFolder::create(const std::string& relative, unsigned mode) {
  for (std::size_t slash = relative.find('/'); slash != std::string::npos;
       slash = relative.find('/', slash + 1)) {
    const std::string folder = relative.substr(0, slash);
    if (std::find(folders_.begin(), folders_.end(), folder) != folders_.end()) continue;
    if (os::mkdir_at(staging_.get(), folder.c_str(), 0777) != 0) {
      throw system_error(join(path_, folder), "writing", errno);
    }
    folders_.push_back(folder);
  }
  Descriptor fd(os::open_at(staging_.get(), relative.c_str(),
                            O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode | 0600U));
  if (!fd) throw system_error(join(path_, relative), "writing", errno);
  files_.push_back(relative);
  return fd;
}

void OutputFolder::check_replaced() const {
  if (!replaces_) return;
  std::vector<std::string> links;
  for (const std::string& name : list_files(path_, &links)) {
    struct stat own = {};
    const std::string full = join(path_, name);
    if (os::stat_at(AT_FDCWD, full.c_str(), own, AT_SYMLINK_NOFOLLOW) == 0 &&
        S_ISLNK(own.st_mode)) {
      links.push_back(name);
    }
    if (!is_weights(name) && std::find(files_.begin(), files_.end(), name) == files_.end()) {
      throw InputError(
          path_, fmt::format("contains '{}', which would be lost: not replaced", escape(name)));
    }
  }
  if (links.empty()) return;
  throw InputError(path_, fmt::format("contains the link '{}': not replaced", escape(links[0])));
}

void OutputFolder::sync_all() {
  const auto sync_entry = [&](const std::string& name) {
    const Descriptor fd(os::open_at(staging_.get(), name.c_str(), O_RDONLY | O_CLOEXEC));
    if (!fd || os::sync(fd.get()) != 0) {
      throw system_error(join(path_, name), "writing to disk", errno);
    }
  };
  for (const std::string& name : files_) sync_entry(name);
  for (const std::string& name : folders_) sync_entry(name);
  if (os::sync(staging_.get()) != 0) throw system_error(path_, "writing to disk", errno);
}

void OutputFolder::rename_in_two_steps() {
  const std::string old = old_name(name_);
  remove_tree(parent_.get(), old);  // what a killed run left after the second step
  const auto fail = [&](int error) { throw system_error(path_, "renaming into place", error); };
  if (os::rename_at(parent_.get(), name_.c_str(), old.c_str()) != 0) fail(errno);
  if (os::rename_at(parent_.get(), temporary_.c_str(), name_.c_str()) == 0) return;
  const int error = errno;
  os::rename_at(parent_.get(), old.c_str(), name_.c_str());
  fail(error);
}

void OutputFolder::commit() {
  const mode_t mode = (new_file_mode() & 0777U) | ((new_file_mode() & 0444U) >> 2U);
  if (os::chmod_fd(staging_.get(), mode) != 0) throw system_error(path_, "setting the mode", errno);
  check_replaced();
  sync_all();
  std::string old = temporary_;
  if (os::rename_at(parent_.get(), temporary_.c_str(), name_.c_str(),
                    replaces_ ? RENAME_EXCHANGE : 0U) != 0) {
    const int error = errno;
    if (!replaces_ && (error == ENOTEMPTY || error == EEXIST)) {
      throw InputError(path_, "was filled by another process meanwhile; left as it is");
    }
    if (!replaces_ || (error != EINVAL && error != ENOSYS && error != EOPNOTSUPP))
      throw system_error(path_, "renaming into place", error);
    old = old_name(name_);
    rename_in_two_steps();
  }
  committed_ = true;
  // Before the old files go: a disk may keep their removal and lose the exchange.
  if (os::sync(parent_.get()) == 0) {
    if (replaces_) remove_tree(parent_.get(), old);
    return;
  }
  const int error = errno;
  if (!replaces_)
    throw system_error(path_, "the new folder is in place, writing its name to disk", error);
  throw system_error(path_,
                     fmt::format("the old folder is kept as {}, writing both names to disk",
                                 escape(join(folder_of(path_), old))),
                     error);
}

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
