// Fields of comma-separated values, RFC 4180.
#pragma once

#include <string>
#include <string_view>

namespace masque::cli {

/// Returns `text` as a field in double quotes; a double quote in it becomes two. Control characters
/// (C0 but tab and line feed, DEL, C1) and bytes that are not UTF-8 become `\xNN` or `\u{…}` as
/// escape() spells them, because files are shown on terminals, too. Everything else stays, a
/// backslash as well. For a `terminal` bidirectional controls, U+2028, U+2029 and U+FEFF are
/// spelled, too. Cost O(n).
std::string csv_text(std::string_view text, bool terminal);

/// Returns `name`, that of a column, as a field: as it is, or as csv_text() with `terminal` if it
/// holds anything that needs quotes or is spelled there.
std::string csv_name(std::string_view name, bool terminal);

}  // namespace masque::cli
