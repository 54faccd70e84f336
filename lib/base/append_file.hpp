// A text file that grows at its end, line by line, while a long run goes on.
#pragma once

#include <string>
#include <string_view>

#include "base/file.hpp"

namespace masque {

/// A log: what was appended stays, however the process ends. For one writer.
class AppendFile {
 public:
  /// Opens a regular file to append to; there may be none yet. Throws InputError if it cannot be
  /// opened, and without `goes_on` for one that is not empty.
  AppendFile(const std::string& path, bool goes_on);

  /// Throws InputError.
  void append(std::string_view text);

 private:
  std::string path_;
  Descriptor fd_;
  std::uint64_t size_ = 0;
};

}  // namespace masque
