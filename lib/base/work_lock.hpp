// One process at a time works on an output that takes long to make.
#pragma once

#include <string>

#include "base/file.hpp"

namespace masque {

/// The right to work on an output, as long as this object exists. It is a locked file next to the
/// output, ".NAME.lock.masque-tmp": the system takes the lock away when the process ends, however
/// it does, and the file is removed with this object. What a killed process left is taken over.
class WorkLock {
 public:
  /// Takes the lock of the output `path`, which there may not be yet. Throws InputError: another
  /// process has it, or its folder is not there or cannot be written. On a file system without
  /// locks nothing is locked.
  explicit WorkLock(const std::string& path);
  WorkLock(const WorkLock&) = delete;
  WorkLock& operator=(const WorkLock&) = delete;
  ~WorkLock();

 private:
  Descriptor folder_;
  std::string name_;
  Descriptor fd_;
};

}  // namespace masque
