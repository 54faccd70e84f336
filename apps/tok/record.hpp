// How ids and records are printed.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "text/encoding.hpp"

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

}  // namespace masque::tok
