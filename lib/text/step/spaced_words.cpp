#include "text/step/spaced_words.hpp"

#include <optional>

#include "text/unicode/unicode.hpp"
#include "text/unicode/utf8.hpp"

namespace masque::text {

Stretch next_spaced_word(std::string_view text, std::size_t from) {
  std::optional<std::size_t> begin;
  for (std::size_t i = from; i < text.size();) {
    const std::size_t at = i;
    const bool space = is_white_space(next_char(text, i));
    if (space && begin) return {*begin, at};
    if (!space && !begin) begin = at;
  }
  return {begin.value_or(text.size()), text.size()};
}

Stretch trimmed(std::string_view text, Stretch place) {
  for (std::size_t next = place.begin; place.begin < place.end; place.begin = next) {
    if (!is_white_space(next_char(text, next))) break;
  }
  for (std::size_t last = place.end; place.end > place.begin; place.end = last) {
    if (!is_white_space(previous_char(text, last))) break;
  }
  return place;
}

std::vector<Stretch> spaced_words(std::string_view text) {
  std::vector<Stretch> words;
  for (Stretch word = next_spaced_word(text, 0); word.begin < word.end;
       word = next_spaced_word(text, word.end)) {
    words.push_back(word);
  }
  return words;
}

}  // namespace masque::text
