// Reading files: the only way to bytes, bounds-checked against the size seen when opened.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "base/types.hpp"

namespace masque {

/// Owns a file descriptor.
class Descriptor {
 public:
  explicit Descriptor(int fd = -1) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept;
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor();
  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }

 private:
  int fd_;
};

/// A regular file opened for reading. Movable; reads are thread-safe.
class InputFile {
 public:
  /// Opens `path`. Throws InputError if it cannot be opened or is not a regular file (a folder, a
  /// pipe or a device is named as such).
  static InputFile open(const std::string& path);
  /// Opens the entry `name` of an open folder; `path` is what messages call it.
  static InputFile open_in(int folder, const std::string& name, const std::string& path);

  const std::string& path() const { return path_; }
  std::uint64_t size() const { return size_; }
  int descriptor() const { return fd_.get(); }
  unsigned mode() const { return mode_; }

  /// Reads exactly out.size() bytes at `offset`. Throws InputError if the range is beyond the size
  /// seen at opening, or the file has shrunk since.
  void read(std::uint64_t offset, MutableBytes out) const;

  /// The whole file as text. Throws InputError if it is larger than `limit` bytes.
  std::string read_all(std::uint64_t limit) const;

 private:
  InputFile(Descriptor fd, std::string path);

  Descriptor fd_;
  std::string path_;
  std::uint64_t size_ = 0;
  unsigned mode_ = 0;
};

/// What messages call standard input.
inline constexpr const char* kStandardInput = "standard input";

/// What messages call an input: its path, or standard input for "-".
std::string input_name(const std::string& path);

/// A file, a pipe or, for "-", standard input, read once from its beginning to its end.
class InputStream {
 public:
  /// Throws UsageError if standard input is a terminal, InputError if the path cannot be opened.
  explicit InputStream(const std::string& path);

  const std::string& name() const { return name_; }  ///< as input_name() says
  int descriptor() const;

  /// Up to `size` bytes, as they come; 0 at the end only. Throws InputError if it cannot be read.
  std::size_t read(char* out, std::size_t size);
  /// As many bytes as there are, up to `size`; fewer at the end only. Throws as read().
  std::size_t fill(char* out, std::size_t size);

 private:
  std::string name_;
  Descriptor opened_;  ///< none: standard input
};

/// The text of a file, a pipe or, for "-", of standard input, up to its end. Throws InputError if
/// it cannot be read, has more than `limit` bytes, or is a device that gives more than 1 MiB.
std::string read_text(const std::string& path, std::uint64_t limit);

/// Writes all bytes to a descriptor, retrying short and interrupted writes. Throws InputError
/// naming `path`.
void write_all(int fd, Bytes bytes, const std::string& path);

/// Writes all bytes at `offset`; otherwise as write_all. Thread-safe for disjoint ranges.
void write_at(int fd, std::uint64_t offset, Bytes bytes, const std::string& path);

/// Opens a folder for use with the calls that take one. Throws InputError.
Descriptor open_folder(const std::string& path);

/// Makes a folder whose name then is on the disk; one that is there stays. Throws InputError.
void make_folder(const std::string& path);

/// "a/b/c" → "a/b", "c" → ".", "/c" → "/".
std::string folder_of(std::string_view path);

/// The last component: "a/b/c" → "c"; trailing slashes are ignored.
std::string base_name(std::string_view path);

/// folder + "/" + name.
std::string join(std::string_view folder, std::string_view name);

/// Whether the path leads to a folder. Throws InputError if that cannot be determined (anything but
/// "not there").
bool is_folder(const std::string& path);
/// Whether the path leads to a pipe, a socket or a character device: something to be read once.
bool is_stream(const std::string& path);
/// Whether there is an entry of this name, a dangling link included. Throws as is_folder.
bool exists(const std::string& path);

inline Bytes as_bytes(std::string_view text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}

}  // namespace masque
