#include "base/output_group.hpp"

#include <fcntl.h>

#include <cerrno>

#include "base/error.hpp"
#include "base/os.hpp"
#include "base/output_file.hpp"
#include "base/output_folder.hpp"

namespace masque {

OutputGroup::OutputGroup(const std::string& path)
    : path_(path),
      name_(base_name(path)),
      temporary_(staging_name(name_)),
      staging_path_(join(folder_of(path), temporary_)) {
  if (name_.empty() || path.back() == '/') throw InputError(path, "is a folder, expected a file");
  refuse_unsafe_target(path);
  refuse_existing();
  folder_ = open_folder(folder_of(path));
  staging_ = open_staging(folder_.get(), temporary_, true, path_);
}

OutputGroup::~OutputGroup() {
  if (committed_) return;
  for (const File& file : files_) {
    if (file.renamed) os::unlink_at(folder_.get(), file.name.c_str());
  }
  remove_tree(folder_.get(), temporary_);
}

void OutputGroup::refuse_existing() const {
  if (!exists(path_)) return;
  throw InputError(path_,
                   "exists, and with its other files cannot be replaced in one step: expected a "
                   "new name");
}

int OutputGroup::create(const std::string& name) {
  const std::string path = join(folder_of(path_), name);
  // What a killed run left. First: after a loss of power a file may have this name and its own,
  // too.
  if (os::unlink_at(staging_.get(), name.c_str()) != 0 && errno != ENOENT)
    throw system_error(path, "writing", errno);
  refuse_unsafe_target(path);
  Descriptor fd(os::open_at(staging_.get(), name.c_str(),
                            O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666));
  if (!fd) throw system_error(path, "writing", errno);
  files_.push_back({name, std::move(fd)});
  return files_.back().fd.get();
}

void OutputGroup::rename(const std::string& name) const {
  const std::string from = join(temporary_, name);
  if (os::rename_at(folder_.get(), from.c_str(), name.c_str()) != 0)
    throw system_error(join(folder_of(path_), name), "renaming into place", errno);
}

void OutputGroup::commit() {
  // After a failed sync the kernel may have dropped the pages: never tried again.
  for (const File& file : files_) {
    if (os::sync(file.fd.get()) != 0)
      throw system_error(join(folder_of(path_), file.name), "writing to disk", errno);
  }
  refuse_existing();
  for (File& file : files_) {
    if (file.name == name_) continue;
    rename(file.name);
    file.renamed = true;
  }
  // A disk may keep later changes of a folder and lose earlier ones.
  const auto sync_folder = [&] {
    if (os::sync(folder_.get()) != 0)
      throw system_error(path_, "writing its folder to disk", errno);
  };
  sync_folder();
  rename(name_);
  committed_ = true;
  remove_tree(folder_.get(), temporary_);
  sync_folder();
}

}  // namespace masque
