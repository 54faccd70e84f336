// Ids as a file of integers.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/output_file.hpp"
#include "base/types.hpp"
#include "records/binary_layout.hpp"

namespace masque::tok {

class BinaryOutput {
 public:
  /// Ids of `bytes` bytes each, 2 or 4. Throws UsageError if ids below `ids` do not fit them,
  /// InputError as OutputFile does.
  BinaryOutput(const std::string& path, int bytes, records::BinaryLayout layout, std::size_t ids);

  /// Appends ids in the file's form. Thread-safe.
  void append(std::string& out, const std::vector<TokenId>& ids) const;
  void write(const std::string& ids);
  /// Writes the header; the file is then there.
  void commit();

 private:
  int bytes_;
  records::BinaryLayout layout_;
  OutputFile file_;
  std::uint64_t written_ = 0;
};

}  // namespace masque::tok
