// How ids and records are written: as text, as JSON, as a file of integers.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/file/output_file.hpp"
#include "base/types.hpp"
#include "records/binary_layout.hpp"
#include "text/step/encoding.hpp"

namespace masque::tok {

/// Fields of a record besides `ids`.
struct RecordFields {
  bool text = false;
  bool offsets = false;
  bool tokens = false;
  bool seg = false;
  bool special = false;

  /// Whether it takes more than the ids and the line.
  bool need_encoding() const { return offsets || tokens || seg || special; }
};
/// "text,offsets". Throws UsageError.
RecordFields parse_fields(std::string_view list);

/// One JSON object and a line feed.
void append_record(std::string& out, const text::Encoding& encoding, std::string_view line,
                   const RecordFields& fields);
/// The same where the fields need no encoding.
void append_record(std::string& out, const std::vector<TokenId>& ids, std::string_view line,
                   const RecordFields& fields);

// Ids as a file of integers.

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
