// Lists of names as people write them: "rope, rope_ntk(factor=8, length=64)".
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace masque {

/// Returns the names in `text`, such as "rope, rope_ntk(factor=8, length=64)": split at commas
/// outside of parentheses and trimmed. Throws UsageError, about the field `name`, for an empty name
/// and for one that occurs twice.
std::vector<std::string> split_names(std::string_view name, std::string_view text);

}  // namespace masque
