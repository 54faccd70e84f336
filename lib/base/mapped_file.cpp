#include "base/mapped_file.hpp"

#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/os.hpp"

namespace masque {

std::shared_ptr<const MappedFile> MappedFile::map(const InputFile& file) {
  struct stat info = {};
  if (os::stat_fd(file.descriptor(), info) != 0) {
    throw system_error(file.path(), "reading", errno);
  }
  if (static_cast<std::uint64_t>(info.st_size) < file.size()) {
    throw InputError(file.path(), fmt::format("ends at byte {}, was {} bytes when opened",
                                              info.st_size, file.size()));
  }
  if (file.size() == 0) return std::shared_ptr<const MappedFile>(new MappedFile(nullptr, 0));
  void* data = ::mmap(nullptr, file.size(), PROT_READ, MAP_PRIVATE, file.descriptor(), 0);
  if (data == MAP_FAILED) throw system_error(file.path(), "mapping", errno);
  return std::shared_ptr<const MappedFile>(
      new MappedFile(static_cast<const std::byte*>(data), file.size()));
}

MappedFile::~MappedFile() {
  if (size_ > 0) ::munmap(const_cast<std::byte*>(data_), size_);
}

}  // namespace masque
