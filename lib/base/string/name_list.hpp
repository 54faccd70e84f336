// Lists of names in one text: as people write them, "rope, rope_ntk(factor=8, length=64)", and as
// tables have them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace masque {

/// Whether `word`, not empty and without spaces, is one of those of `words`, which have a space
/// between them. O(words).
inline bool has_word(std::string_view words, std::string_view word) {
  for (std::size_t at = words.find(word); at != std::string_view::npos;
       at = words.find(word, at + 1)) {
    const std::size_t end = at + word.size();
    if ((at == 0 || words[at - 1] == ' ') && (end == words.size() || words[end] == ' '))
      return true;
  }
  return false;
}

/// Returns the names in `text`, such as "rope, rope_ntk(factor=8, length=64)": split at commas
/// outside of parentheses and trimmed. Throws UsageError, about the field `name`, for an empty name
/// and for one that occurs twice.
std::vector<std::string> split_names(std::string_view name, std::string_view text);

}  // namespace masque
