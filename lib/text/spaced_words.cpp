#include "text/spaced_words.hpp"

#include "text/code_points.hpp"
#include "text/unicode/utf8.hpp"

namespace masque::text {

std::vector<Stretch> spaced_words(std::string_view text) {
  std::vector<Stretch> words;
  bool inside = false;
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t begin = i;
    if (is_white_space(next_char(text, i))) {
      inside = false;
    } else if (inside) {
      words.back().end = i;
    } else {
      words.push_back({begin, i});
      inside = true;
    }
  }
  return words;
}

}  // namespace masque::text
