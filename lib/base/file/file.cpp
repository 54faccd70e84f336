#include "base/file/file.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/file/os.hpp"
#include "base/thread/interrupt.hpp"

namespace masque {

Descriptor& Descriptor::operator=(Descriptor&& other) noexcept {
  if (this != &other) {
    if (fd_ >= 0) ::close(fd_);
    fd_ = std::exchange(other.fd_, -1);
  }
  return *this;
}

Descriptor::~Descriptor() {
  if (fd_ >= 0) ::close(fd_);
}

namespace {

const char* kind_of(mode_t mode) {
  if (S_ISDIR(mode)) return "a folder";
  if (S_ISFIFO(mode)) return "a pipe";
  if (S_ISSOCK(mode)) return "a socket";
  return "a device";
}

}  // namespace

InputFile::InputFile(Descriptor fd, std::string path) : fd_(std::move(fd)), path_(std::move(path)) {
  struct stat info = {};
  if (os::stat_fd(fd_.get(), info) != 0) throw system_error(path_, "reading", errno);
  if (!S_ISREG(info.st_mode)) {
    throw InputError(path_, fmt::format("is {}, expected a regular file", kind_of(info.st_mode)));
  }
  size_ = static_cast<std::uint64_t>(info.st_size);
  mode_ = info.st_mode & 07777U;
}

InputFile InputFile::open(const std::string& path) { return open_in(AT_FDCWD, path, path); }

InputFile InputFile::open_in(int folder, const std::string& name, const std::string& path) {
  // Non-blocking, because opening a pipe for reading would wait for a writer.
  Descriptor fd(os::open_at(folder, name.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
  if (!fd) throw system_error(path, "opening", errno);
  return {std::move(fd), path};
}

void InputFile::read(std::uint64_t offset, MutableBytes out) const {
  if (offset > size_ || out.size() > size_ - offset) {
    throw InputError(path_, fmt::format("bytes {} to {} needed, file has {}", offset,
                                        offset + out.size(), size_));
  }
  std::size_t done = 0;
  while (done < out.size()) {
    const ssize_t count = os::pread(fd_.get(), out.data() + done, out.size() - done,
                                    static_cast<off_t>(offset + done));
    if (count < 0) {
      if (errno == EINTR) {
        throw_if_interrupted();
        continue;
      }
      throw system_error(path_, "reading", errno);
    }
    if (count == 0) {
      throw InputError(
          path_, fmt::format("ends at byte {}, was {} bytes when opened", offset + done, size_));
    }
    done += static_cast<std::size_t>(count);
  }
}

std::string InputFile::read_all(std::uint64_t limit) const {
  if (size_ > limit) {
    throw InputError(path_, fmt::format("has {} bytes, expected at most {}", size_, limit));
  }
  std::string text(size_, '\0');
  read(0, std::as_writable_bytes(std::span(text)));
  return text;
}

std::string input_name(const std::string& path) { return path == "-" ? kStandardInput : path; }

InputStream::InputStream(const std::string& path) : name_(input_name(path)) {
  if (path == "-") {
    if (::isatty(STDIN_FILENO) == 1)
      throw UsageError("no input: standard input is a terminal; pipe data in, or use < FILE");
    return;
  }
  opened_ = Descriptor(os::open_at(AT_FDCWD, path.c_str(), O_RDONLY | O_CLOEXEC));
  if (opened_) return;
  const int error = errno;
  if (error == EINTR) throw_if_interrupted();
  throw system_error(name_, "opening", error);
}

int InputStream::descriptor() const { return opened_ ? opened_.get() : STDIN_FILENO; }

std::size_t InputStream::read(char* out, std::size_t size) {
  while (size > 0) {
    throw_if_interrupted();
    const ssize_t count = os::read(descriptor(), out, size);
    if (count >= 0) return static_cast<std::size_t>(count);
    if (errno != EINTR) throw system_error(name_, "reading", errno);
  }
  return 0;
}

std::size_t InputStream::fill(char* out, std::size_t size) {
  std::size_t done = 0;
  while (done < size) {
    const std::size_t count = read(out + done, size - done);
    if (count == 0) break;
    done += count;
  }
  return done;
}

bool InputStream::is_device() const {
  struct stat info = {};
  return ::fstat(descriptor(), &info) == 0 && S_ISCHR(info.st_mode);
}

void InputStream::refuse_endless(std::uint64_t bytes) const {
  constexpr std::uint64_t kMostDeviceBytes = 1 << 20;
  if (bytes <= kMostDeviceBytes || !is_device()) return;
  throw InputError(name_,
                   fmt::format("has more than {} bytes and is a device, expected a file or a pipe",
                               kMostDeviceBytes));
}

namespace {

/// One step of a write loop: bytes written, 0 after a retryable interruption.
std::size_t written(ssize_t count, int fd, const std::string& path) {
  if (count > 0) return static_cast<std::size_t>(count);
  if (count == 0) throw system_error(path, "writing", ENOSPC);
  if (errno == EINTR) {
    throw_if_interrupted();
    return 0;
  }
  if (errno == EAGAIN) {  // a pipe that somebody made non-blocking
    struct pollfd wait = {fd, POLLOUT, 0};
    ::poll(&wait, 1, -1);
    return 0;
  }
  throw system_error(path, "writing", errno);
}

}  // namespace

void write_all(int fd, Bytes bytes, const std::string& path) {
  while (!bytes.empty()) {
    bytes = bytes.subspan(written(os::write(fd, bytes.data(), bytes.size()), fd, path));
  }
}

void write_at(int fd, std::uint64_t offset, Bytes bytes, const std::string& path) {
  while (!bytes.empty()) {
    const std::size_t count =
        written(os::pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(offset)), fd, path);
    offset += count;
    bytes = bytes.subspan(count);
  }
}

void refuse_folder(const std::string& path, int code) {
  if (code == ENOENT) throw InputError(path, "no such folder, expected one that exists");
  if (code == ENOTDIR) throw InputError(path, "not a folder");
  throw system_error(path, "opening folder", code);
}

Descriptor open_folder(const std::string& path) {
  Descriptor fd(os::open_at(AT_FDCWD, path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd) refuse_folder(path, errno);
  return fd;
}

void make_folder(const std::string& path) {
  if (os::mkdir_at(AT_FDCWD, path.c_str(), 0777) != 0) {
    const int error = errno;
    if (error != EEXIST) throw system_error(path, "cannot be created", error);
    if (!is_folder(path)) throw InputError(path, "is not a folder, expected one or a new name");
    return;
  }
  if (os::sync(open_folder(folder_of(path)).get()) != 0)
    throw system_error(path, "writing its folder to disk", errno);
}

std::string folder_of(std::string_view path) {
  while (path.size() > 1 && path.back() == '/') path.remove_suffix(1);
  const std::size_t slash = path.rfind('/');
  if (slash == std::string_view::npos) return ".";
  return slash == 0 ? "/" : std::string(path.substr(0, slash));
}

std::string base_name(std::string_view path) {
  while (path.size() > 1 && path.back() == '/') path.remove_suffix(1);
  return std::string(path.substr(path.rfind('/') + 1));
}

std::string join(std::string_view folder, std::string_view name) {
  if (folder.empty() || folder == ".") return std::string(name);
  return fmt::format("{}{}{}", folder, folder.back() == '/' ? "" : "/", name);
}

namespace {

/// Looks at a path; false if nothing is there.
bool look_at(const std::string& path, int flags, struct stat& info) {
  if (os::stat_at(AT_FDCWD, path.c_str(), info, flags) == 0) return true;
  if (errno == ENOENT || errno == ENOTDIR) return false;
  throw system_error(path, "reading its status", errno);
}

}  // namespace

bool is_folder(const std::string& path) {
  struct stat info = {};
  return look_at(path, 0, info) && S_ISDIR(info.st_mode);
}

bool is_stream(const std::string& path) {
  struct stat info = {};
  return look_at(path, 0, info) &&
         (S_ISFIFO(info.st_mode) || S_ISSOCK(info.st_mode) || S_ISCHR(info.st_mode));
}

bool exists(const std::string& path) {
  struct stat info = {};
  return look_at(path, AT_SYMLINK_NOFOLLOW, info);
}

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
