// What a long run gathers until its output is written: kept in a file without a name, not in
// memory.
#pragma once

#include <string>
#include <string_view>

#include "base/file.hpp"

namespace masque {

/// A file that grows at its end and has no name: it is gone when the process ends, however it does.
class ScratchFile {
 public:
  /// In the folder of `path`, an output that there may not be yet, and which messages name. Throws
  /// InputError if no file can be made there.
  explicit ScratchFile(const std::string& path);

  /// Appends `text`, whole or, where it throws, not at all; signals wait. Throws InputError.
  void append(std::string_view text);
  /// Bytes that were appended.
  std::uint64_t size() const { return size_; }
  /// Reads exactly out.size() bytes at byte `offset` of what was appended into `out`; a range
  /// beyond size() is a MASQUE_CHECK. Thread-safe while nobody appends. Throws InputError and
  /// Interrupted.
  void read(std::uint64_t offset, MutableBytes out) const;

 private:
  std::string path_;
  Descriptor fd_;
  std::uint64_t size_ = 0;
};

}  // namespace masque
