// Text that is not valid UTF-8.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "text/utf8.hpp"

namespace masque::text {

/// Appends `text` with U+FFFD for every maximal subpart that is not UTF-8, as Rust's
/// `from_utf8_lossy` and Python's "replace" do. Returns how many there were.
std::size_t repair_utf8(std::string_view text, std::string& out);

}  // namespace masque::text
