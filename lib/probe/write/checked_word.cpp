#include "probe/write/checked_word.hpp"

#include "base/error.hpp"

namespace masque::probe {

std::string corrected(std::string_view text, std::span<const CheckedWord> words, double threshold) {
  std::string out;
  std::size_t at = 0;
  for (const CheckedWord& word : words) {
    if (word.replacement.empty() || !(word.gain() > threshold)) continue;
    MASQUE_CHECK(word.span.begin >= at);
    out.append(text, at, word.span.begin - at);
    out += word.replacement;
    at = word.span.end;
  }
  return out.append(text, at);
}

}  // namespace masque::probe
