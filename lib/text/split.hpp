// Cutting words at matches.
#pragma once

#include <span>
#include <utility>
#include <vector>

#include "text/aligned_text.hpp"
#include "text/pattern.hpp"
#include "text/unicode/utf8.hpp"

namespace masque::text {

class PartFields;

/// What becomes of a match.
enum class SplitBehavior { kRemoved, kIsolated, kMergedWithPrevious, kMergedWithNext, kContiguous };

/// The field `name` of `fields`, spelled as in tokenizer.json ("MergedWithNext"); throws InputError
/// if it is missing or unknown.
SplitBehavior read_split_behavior(const PartFields& fields, std::string_view name);

/// Appends the parts of `word` that its `matches`, from left to right, cut to `out`; `behavior`
/// says what becomes of a match. With `invert`, what lies between the matches is the match. Empty
/// parts are left out.
void split_word(const AlignedText& word, std::span<const Stretch> matches, bool invert,
                SplitBehavior behavior, std::vector<AlignedText>& out);

/// Replaces every one of `words` by its parts, as split_word() with `invert` and `behavior`;
/// `find`(text, matches) appends the matches in a word.
template <typename Find>
void split_words(std::vector<AlignedText>& words, const Find& find, bool invert,
                 SplitBehavior behavior) {
  std::vector<AlignedText> out;
  std::vector<Stretch> matches;
  for (const AlignedText& word : words) {
    matches.clear();
    find(word.text, matches);
    split_word(word, matches, invert, behavior, out);
  }
  words = std::move(out);
}

/// Appends each character of `text` for which `is`(c) is true to `out`.
template <typename Is>
void find_chars(std::string_view text, const Is& is, std::vector<Stretch>& out) {
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t begin = i;
    if (is(next_char(text, i))) out.push_back({begin, i});
  }
}

}  // namespace masque::text
