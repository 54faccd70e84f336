// A whole file in memory, read by the system as it is touched.
#pragma once

#include <memory>

#include "base/file.hpp"

namespace masque {

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
