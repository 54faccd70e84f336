// Bytes as a file that is only in memory, for what reads files.
#pragma once

#include <sys/mman.h>

#include <string>
#include <string_view>

#include "base/file/file.hpp"

namespace masque::test {

class MemoryFile {
 public:
  explicit MemoryFile(std::string_view bytes) : fd_(::memfd_create("masque", MFD_CLOEXEC)) {
    write_all(fd_.get(), as_bytes(bytes), "memory");
  }
  /// A name under which this process can open it.
  std::string path() const { return "/proc/self/fd/" + std::to_string(fd_.get()); }
  InputFile open() const { return InputFile::open(path()); }

 private:
  Descriptor fd_;
};

}  // namespace masque::test
