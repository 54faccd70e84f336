// The end of a zip file, which says where its directory is.
#pragma once

#include "base/file.hpp"
#include "store/violation.hpp"

namespace masque::store::zip {

/// Where the directory is: it ends where the end records begin.
struct DirectoryRange {
  std::uint64_t begin = 0;  ///< first byte in the file
  std::uint64_t size = 0;   ///< bytes
  std::uint64_t count = 0;  ///< members
};

/// Finds and validates the end record of `file`, and those of ZIP64 where they are. Throws
/// InputError if it cannot be read.
Checked<DirectoryRange> find_directory(const InputFile& file);

}  // namespace masque::store::zip
