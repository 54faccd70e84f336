#include "probe/write/line_words.hpp"

#include <algorithm>

#include "base/ascii.hpp"
#include "base/escape.hpp"
#include "text/code_points.hpp"
#include "text/spaced_words.hpp"
#include "text/unicode/unicode.hpp"

namespace masque::probe {

namespace {

std::string trimmed(std::string_view text) {
  const text::Stretch place = text::trimmed(text, {0, text.size()});
  return std::string(text.substr(place.begin, place.end - place.begin));
}

/// Whether white space stands between byte `from` of a text and a token that ends at `to`, or in
/// front of its characters.
bool after_white_space(std::string_view text, std::size_t from, std::size_t to) {
  return from < to && text::trimmed(text, {from, to}).begin > from;
}

}  // namespace

std::u32string characters(std::string_view text) {
  std::u32string out;
  while (!text.empty()) {
    char32_t c = 0;
    const int size = decode_utf8(text, c);
    if (size == 0) break;
    out.push_back(c);
    text.remove_prefix(static_cast<std::size_t>(size));
  }
  return out;
}

bool has_letter(std::u32string_view text) {
  return std::ranges::any_of(text, [](char32_t c) { return text::is(c, text::kLetter); });
}

bool has_white_space(std::u32string_view text) {
  return std::ranges::any_of(text, text::is_white_space);
}

std::string shown(const text::Tokenizer& tokenizer, const std::vector<TokenId>& ids) {
  return trimmed(tokenizer.decode(ids, false));
}

std::string normalized(const text::Tokenizer& tokenizer, std::string_view word) {
  const text::TokenizerParts& parts = tokenizer.parts();
  if (!parts.steps.normalizer) return std::string(word);
  text::AlignedText text = text::AlignedText::from(word);
  parts.steps.normalizer->apply(text);
  std::string_view out = text.text;
  // Normalizers of Llama put the mark of spaces in front.
  if (parts.word_mark == text::WordMark::kSpace && out.starts_with(parts.word_prefix))
    out.remove_prefix(parts.word_prefix.size());
  return trimmed(out);
}

std::vector<WordTokens> words_apart(const Sentence& s, std::string_view text) {
  std::vector<WordTokens> words;
  std::size_t last_end = 0;
  for (Index t = s.prefix; t < s.size() - s.suffix; ++t) {
    const auto at = static_cast<std::size_t>(t);
    const auto [begin, end] = s.spans[at];
    const bool same = !words.empty() && s.words[at] != text::kNoWord &&
                      s.words[at] == s.words[at - 1] && !after_white_space(text, last_end, end);
    if (!same) words.push_back({{begin, end}, t, t});
    const auto take = [](WordTokens& word, std::size_t from, std::size_t to, Index last) {
      word.place = {std::min(word.place.begin, from), std::max(word.place.end, to)};
      word.end = last;
    };
    take(words.back(), begin, end, t + 1);
    last_end = std::max<std::size_t>(last_end, end);
    while (words.size() > 1 && words.back().place.begin < words[words.size() - 2].place.end) {
      const WordTokens word = words.back();
      words.pop_back();
      take(words.back(), word.place.begin, word.place.end, word.end);
    }
  }
  for (WordTokens& word : words) word.place = text::trimmed(text, word.place);
  return words;
}

WordTokens tokens_of(const Sentence& s, std::string_view text, text::Stretch place) {
  const Index end = s.size() - s.suffix;
  const auto before = [&](Index t) {
    return s.spans[static_cast<std::size_t>(t)].end <= place.begin;
  };
  const auto touches = [&](Index t) {
    const auto [from, to] = s.spans[static_cast<std::size_t>(t)];
    return from < place.end && to > place.begin;
  };
  WordTokens out{place, s.prefix, s.prefix};
  while (out.begin < end && !touches(out.begin)) ++out.begin;
  for (out.end = out.begin; out.end < end; ++out.end) {
    if (!touches(out.end) && !before(out.end)) break;
  }
  const auto empty = [&](Index t) {
    const auto [from, to] = s.spans[static_cast<std::size_t>(t)];
    const text::Stretch shown = text::trimmed(text, {from, to});
    return shown.begin == shown.end;
  };
  while (out.begin < out.end && out.begin > s.prefix && empty(out.begin - 1) &&
         s.words[static_cast<std::size_t>(out.begin - 1)] ==
             s.words[static_cast<std::size_t>(out.begin)])
    --out.begin;
  return out;
}

std::string in_case(std::string text, std::string_view in_line, std::string_view as_read) {
  const bool lowered = !in_line.empty() && !as_read.empty() && is_ascii_capital(in_line[0]) &&
                       is_ascii_small(as_read[0]);
  if (lowered && !text.empty()) text[0] = ascii_capital(text[0]);
  return text;
}

}  // namespace masque::probe
