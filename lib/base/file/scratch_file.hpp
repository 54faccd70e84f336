// Files that grow at their end while a long run goes on: one without a name, for what it gathers
// until its output is written, and a log.
#pragma once

#include <string>
#include <string_view>

#include "base/file/file.hpp"

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

// A text file that grows at its end, line by line, while a long run goes on.

/// A log: what was appended stays, however the process ends. For one writer.
class AppendFile {
 public:
  /// Opens the regular file `path` to append to; makes an empty one if there is none. Throws
  /// InputError if it cannot be opened, is no regular file or, without `goes_on`, is not empty.
  AppendFile(const std::string& path, bool goes_on);

  /// Writes `text` behind what is there; signals wait. Does not sync. Throws InputError; a part of
  /// the text may then be at the end, and the next append() overwrites it.
  void append(std::string_view text);

 private:
  std::string path_;
  Descriptor fd_;
  std::uint64_t size_ = 0;
};

}  // namespace masque
