// Tables that name several things in one text.
#pragma once

#include <string_view>

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

}  // namespace masque
