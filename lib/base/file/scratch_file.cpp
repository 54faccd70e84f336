#include "base/file/scratch_file.hpp"

#include <fcntl.h>

#include <cerrno>

#include "base/error.hpp"
#include "base/file/os.hpp"
#include "base/file/output_file.hpp"
#include "base/file/undo_journal.hpp"
#include "base/thread/interrupt.hpp"

namespace masque {

ScratchFile::ScratchFile(const std::string& path) : path_(path) {
  const Descriptor folder = open_folder(folder_of(path));
  // For a moment it has a name. A run that is killed just then leaves it to the next one.
  const std::string name = staging_name(base_name(path) + ".scratch");
  fd_ = open_staging(folder.get(), name, false, path_);
  if (os::unlink_at(folder.get(), name.c_str()) != 0) throw system_error(path_, "writing", errno);
  if (os::truncate(fd_.get(), 0) != 0) throw system_error(path_, "writing", errno);
}

void ScratchFile::append(std::string_view text) {
  const InterruptsPutOff whole;
  write_at(fd_.get(), size_, as_bytes(text), path_);
  size_ += text.size();
}

void ScratchFile::read(std::uint64_t offset, MutableBytes out) const {
  MASQUE_CHECK(offset <= size_ && out.size() <= size_ - offset);
  throw_if_interrupted();
  if (const int error = read_quietly(fd_.get(), offset, out))
    throw system_error(path_, "reading", error);
}

AppendFile::AppendFile(const std::string& path, bool goes_on) : path_(path) {
  fd_ = Descriptor(
      os::open_at(AT_FDCWD, path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0666));
  if (!fd_) throw system_error(path_, "cannot be opened", errno);
  struct stat status {};
  if (os::stat_fd(fd_.get(), status) != 0) throw system_error(path_, "cannot be read", errno);
  if (!S_ISREG(status.st_mode)) throw InputError(path_, "no regular file, expected one");
  size_ = static_cast<std::uint64_t>(status.st_size);
  if (size_ > 0 && !goes_on) throw InputError(path_, "file exists, expected a new file");
}

void AppendFile::append(std::string_view text) {
  const InterruptsPutOff whole;
  write_at(fd_.get(), size_, as_bytes(text), path_);
  size_ += text.size();
}

}  // namespace masque
