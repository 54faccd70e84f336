// A second implementation of base/utf8, to compare with.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace masque::test {

/// Whether all of it is UTF-8.
bool naive_valid_utf8(std::string_view text);

/// Appends `text` with U+FFFD for every maximal subpart that is not UTF-8. Returns how many.
std::size_t naive_repair_utf8(std::string_view text, std::string& out);

}  // namespace masque::test
