// Ids as a file of integers.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/output_file.hpp"
#include "base/types.hpp"
#include "records/binary_layout.hpp"

namespace masque::tok {

enum class Width { kNone, k16, k32 };

class BinaryOutput {
 public:
  /// Throws UsageError if ids below `ids` do not fit the width, InputError as OutputFile does.
  BinaryOutput(const std::string& path, Width width, records::BinaryLayout layout, std::size_t ids);

  /// Appends ids in the file's form. Thread-safe.
  void append(std::string& out, const std::vector<TokenId>& ids) const;
  void write(const std::string& bytes);
  /// Writes the header; the file is then there.
  void commit();

 private:
  Width width_;
  records::BinaryLayout layout_;
  OutputFile file_;
  std::uint64_t written_ = 0;
};

}  // namespace masque::tok
