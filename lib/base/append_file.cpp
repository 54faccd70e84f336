#include "base/append_file.hpp"

#include <fcntl.h>

#include <cerrno>

#include "base/error.hpp"
#include "base/interrupt.hpp"
#include "base/os.hpp"

namespace masque {

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
