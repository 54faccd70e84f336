// Reading files: the only way to bytes, bounds-checked against the size seen when opened.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "base/types.hpp"

namespace masque {

/// Owns a file descriptor: closes it when the object goes away. Movable.
class Descriptor {
 public:
  /// Takes over `fd`; a negative one is none.
  explicit Descriptor(int fd = -1) : fd_(fd) {}
  /// Takes over the descriptor of `other`, which then has none.
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  /// Closes the own descriptor and takes over that of `other`, which then has none.
  Descriptor& operator=(Descriptor&& other) noexcept;
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor();
  /// The number, which stays this object's; negative if there is none.
  int get() const { return fd_; }
  /// Whether there is a descriptor.
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
  /// Opens the entry `name` of the open folder `folder`; `path` is what messages call it. Throws as
  /// open().
  static InputFile open_in(int folder, const std::string& name, const std::string& path);

  /// What messages call the file: the path of open() or open_in().
  const std::string& path() const { return path_; }
  /// Bytes of the file when it was opened.
  std::uint64_t size() const { return size_; }
  /// The open descriptor, which stays this object's.
  int descriptor() const { return fd_.get(); }
  /// Permission bits of the file when it was opened, within 07777.
  unsigned mode() const { return mode_; }

  /// Reads exactly out.size() bytes at byte `offset` into `out`. Throws InputError if the range is
  /// beyond size(), the file has shrunk since, or the system cannot read it; Interrupted.
  void read(std::uint64_t offset, MutableBytes out) const;

  /// Returns the whole file as text. Throws InputError if it is larger than `limit` bytes, and as
  /// read().
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

/// Returns what messages call an input: `path`, or kStandardInput for "-".
std::string input_name(const std::string& path);

/// A file, a pipe or, for "-", standard input, read once from its beginning to its end.
class InputStream {
 public:
  /// Opens `path`; a named pipe waits for its writer. Throws UsageError if standard input is a
  /// terminal, InputError if the path cannot be opened, and Interrupted.
  explicit InputStream(const std::string& path);

  const std::string& name() const { return name_; }  ///< as input_name() says
  /// The descriptor that is read, which stays this object's; that of standard input for "-".
  int descriptor() const;
  /// Whether it is a character device, which may have no end.
  bool is_device() const;
  /// Throws InputError if it is a device and `bytes`, which were read so far, are more than an
  /// empty one or a terminal gives (1 MiB).
  void refuse_endless(std::uint64_t bytes) const;

  /// Reads up to `size` bytes into `out`, as they come, and returns how many; 0 at the end only (or
  /// for size 0). Throws InputError if the stream cannot be read, and Interrupted.
  std::size_t read(char* out, std::size_t size);
  /// Reads as many bytes as there are, up to `size`, into `out`, and returns how many; fewer than
  /// `size` at the end only. Throws as read().
  std::size_t fill(char* out, std::size_t size);

 private:
  std::string name_;
  Descriptor opened_;  ///< none: standard input
};

/// Returns the text of the file or pipe `path`, or of standard input for "-", up to its end. Throws
/// InputError if it cannot be read, is of another kind than text (refuse_other_kind), has more than
/// `limit` bytes, or is a device that gives more than 1 MiB; UsageError and Interrupted as
/// InputStream.
std::string read_text(const std::string& path, std::uint64_t limit);

/// Writes all `bytes` to the descriptor `fd`, retrying short and interrupted writes; waits for a
/// pipe that is full. Throws InputError naming `path`, and Interrupted.
void write_all(int fd, Bytes bytes, const std::string& path);

/// Writes all `bytes` to `fd` at byte `offset`; otherwise as write_all, with `path` for messages.
/// Thread-safe for disjoint ranges.
void write_at(int fd, std::uint64_t offset, Bytes bytes, const std::string& path);

/// Throws the InputError of a folder `path` that cannot be opened because of the error number
/// `code`.
[[noreturn]] void refuse_folder(const std::string& path, int code);
/// Opens the folder `path` for use with the calls that take one. Throws InputError.
Descriptor open_folder(const std::string& path);

/// Makes the folder `path`, whose name then is on the disk; one that is there stays. Throws
/// InputError, also for any other entry that is there.
void make_folder(const std::string& path);

/// Returns the folder of the entry `path`: "a/b/c" → "a/b", "c" → ".", "/c" → "/". Trailing slashes
/// are ignored.
std::string folder_of(std::string_view path);

/// Returns the last component of `path`: "a/b/c" → "c"; trailing slashes are ignored. Empty for
/// "/".
std::string base_name(std::string_view path);

/// Returns `folder` + "/" + `name`, without a second slash; just `name` for the folders "" and ".".
std::string join(std::string_view folder, std::string_view name);

/// Whether `path` leads to a folder. Throws InputError if that cannot be determined (anything but
/// "not there").
bool is_folder(const std::string& path);
/// Whether `path` leads to a pipe, a socket or a character device: something to be read once.
/// Throws as is_folder.
bool is_stream(const std::string& path);
/// Whether there is an entry `path`, a dangling link included. Throws as is_folder.
bool exists(const std::string& path);

/// Returns a view of the bytes of `text`, which must outlive it.
inline Bytes as_bytes(std::string_view text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}

// A whole file in memory, read by the system as it is touched.

/// The bytes of a regular file, mapped for reading. Shared by all that point into it; the file may
/// be closed, replaced or removed meanwhile. It must not be shortened: touching a page that is gone
/// raises SIGBUS. Thread-safe.
class MappedFile {
 public:
  /// Maps what `file` held when it was opened. Throws InputError if the system cannot, or if the
  /// file has shrunk since.
  static std::shared_ptr<const MappedFile> map(const InputFile& file);

  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();

  /// The bytes of the file: a view that is valid as long as this object.
  Bytes bytes() const { return {data_, size_}; }

 private:
  MappedFile(const std::byte* data, std::size_t size) : data_(data), size_(size) {}
  const std::byte* data_;
  std::size_t size_;
};

}  // namespace masque
