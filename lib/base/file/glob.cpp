#include "base/file/glob.hpp"

namespace masque {

bool matches_glob(std::string_view pattern, std::string_view text) {
  constexpr std::size_t kNone = std::string_view::npos;
  std::size_t p = 0, t = 0;
  // After the last star, and the text from which on it was tried: only that one may have to take
  // more.
  std::size_t star = kNone, tried = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = ++p;
      tried = t;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == text[t])) {
      ++p, ++t;
    } else if (star != kNone) {
      p = star;
      t = ++tried;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

}  // namespace masque
