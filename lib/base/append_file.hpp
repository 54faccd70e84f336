// A text file that grows at its end, line by line, while a long run goes on.
#pragma once

#include <string>
#include <string_view>

#include "base/file.hpp"

namespace masque {

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
