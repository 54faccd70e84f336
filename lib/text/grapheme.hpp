// Extended grapheme clusters.
#pragma once

#include <cstddef>
#include <string_view>

namespace masque::text {

/// End of the extended grapheme cluster (UAX 29) that begins at byte `begin` of `text` (valid
/// UTF-8); begin < size.
std::size_t grapheme_end(std::string_view text, std::size_t begin);

}  // namespace masque::text
