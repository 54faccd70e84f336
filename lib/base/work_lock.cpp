#include "base/work_lock.hpp"

#include "base/os.hpp"
#include "base/output_file.hpp"

namespace masque {

WorkLock::WorkLock(const std::string& path)
    : folder_(open_folder(folder_of(path))),
      name_(staging_name(base_name(path) + ".lock")),
      fd_(open_staging(folder_.get(), name_, false, path)) {}

WorkLock::~WorkLock() {
  // While it is locked: who opens it now sees that it has no name any more, and makes another.
  os::unlink_at(folder_.get(), name_.c_str());
}

}  // namespace masque
