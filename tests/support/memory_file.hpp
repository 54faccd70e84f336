// Bytes as a file that is only in memory, for what reads files.
#pragma once

#include <sys/mman.h>

#include <string>
#include <string_view>

#include "base/file.hpp"

namespace masque::test {

class MemoryFile {
 public:
  explicit MemoryFile(std::string_view bytes) : fd_(::memfd_create("masque", MFD_CLOEXEC)) {
    write_all(fd_.get(), as_bytes(bytes), "memory");
  }
  InputFile open() const { return InputFile::open("/proc/self/fd/" + std::to_string(fd_.get())); }

 private:
  Descriptor fd_;
};

}  // namespace masque::test
