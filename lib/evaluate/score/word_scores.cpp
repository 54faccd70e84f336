#include "evaluate/score/word_scores.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/error.hpp"
#include "text/step/spaced_words.hpp"
#include "text/unicode/space_marks.hpp"

namespace masque::evaluate {

namespace {

constexpr std::array<std::pair<std::string_view, WordUnit>, 2> kUnitNames{
    {{"space", WordUnit::kSpace}, {"tokenizer", WordUnit::kTokenizer}}};

/// Of the sets that a correction scores.
constexpr std::size_t kSpaced = 0;
constexpr std::size_t kUnspaced = 1;
constexpr std::size_t kSets = 2;

std::size_t place_of(const Sentence& sentence, Index token) {
  return static_cast<std::size_t>(sentence.prefix + token);
}

std::vector<WordTokens> spaced(const Sentence& sentence, std::string_view text) {
  std::vector<WordTokens> words;
  for (const text::Stretch& place : text::spaced_words(text)) words.push_back({place, 0, 0});
  if (words.empty()) return words;
  const Index tokens = sentence.tokens();
  std::size_t word = 0;
  for (Index t = 0; t < tokens; ++t) {
    const std::size_t begin = sentence.spans[place_of(sentence, t)].begin;
    while (word + 1 < words.size() && words[word].place.end <= begin) {
      ++word;
      words[word].begin = words[word].end = t;
    }
    words[word].end = t + 1;
  }
  for (++word; word < words.size(); ++word) words[word].begin = words[word].end = tokens;
  return words;
}

std::vector<WordTokens> pre_tokens(const Sentence& sentence, std::string_view text) {
  std::vector<WordTokens> words;
  for (Index t = 0; t < sentence.tokens(); ++t) {
    const std::size_t at = place_of(sentence, t);
    const auto [begin, end] = sentence.spans[at];
    const bool goes_on = t > 0 && sentence.words[at] != text::kNoWord &&
                         sentence.words[at] == sentence.words[at - 1];
    if (!goes_on) words.push_back({{begin, begin}, t, t});
    WordTokens& word = words.back();
    word.place = {std::min<std::size_t>(word.place.begin, begin),
                  std::max<std::size_t>(word.place.end, end)};
    word.end = t + 1;
  }
  for (WordTokens& word : words) word.place = text::trimmed(text, word.place);
  return words;
}

}  // namespace

NameTable<WordUnit> word_unit_names() { return kUnitNames; }

std::vector<WordTokens> words_of(const Sentence& sentence, std::string_view text, WordUnit unit) {
  MASQUE_CHECK(sentence.spans.size() == sentence.ids.size());
  return unit == WordUnit::kSpace ? spaced(sentence, text) : pre_tokens(sentence, text);
}

std::vector<Region> regions_of(std::span<const WordTokens> words, std::string_view labels) {
  const std::vector<text::Stretch> places = text::spaced_words(labels);
  if (places.size() != words.size()) {
    throw InputError(fmt::format("region labels: {}, expected {}, one for each word", places.size(),
                                 words.size()));
  }
  std::vector<Region> regions;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const auto label = labels.substr(places[i].begin, places[i].end - places[i].begin);
    if (regions.empty() || regions.back().label != label) {
      regions.push_back({std::string(label), words[i]});
      continue;
    }
    WordTokens& region = regions.back().tokens;
    region.place.end = words[i].place.end;
    region.end = words[i].end;
  }
  return regions;
}

SpaceCorrection::SpaceCorrection(const text::Tokenizer& tokenizer)
    : spaced_(tokenizer.size(), 0), unspaced_(tokenizer.size(), 0) {
  if (tokenizer.parts().word_mark != text::WordMark::kSpace) {
    throw InputError(fmt::format(
        "the tokenizer does not mark the space before a word, expected one whose tokens begin with "
        "it ({} or {})",
        text::kByteSpaceMark, text::kSpaceMark));
  }
  for (std::size_t i = 0; i < tokenizer.size(); ++i) {
    const auto id = static_cast<TokenId>(i);
    const std::string_view token = tokenizer.token(id);
    if (token.empty() || tokenizer.is_special(id)) continue;
    (token.starts_with(tokenizer.parts().word_prefix) ? spaced_ : unspaced_)[i] = 1;
  }
  if (const auto end = tokenizer.roles().eos) {
    spaced_[static_cast<std::size_t>(*end)] = 1;
    unspaced_[static_cast<std::size_t>(*end)] = 1;
  }
}

bool SpaceCorrection::begins_spaced(const Sentence& sentence, Index token) const {
  const auto id = static_cast<std::size_t>(sentence.ids[place_of(sentence, token)]);
  return id < spaced_.size() && spaced_[id] != 0;
}

double SpaceCorrection::of(const ScoredSentence& scored, const WordTokens& word) const {
  const auto at = [&](Index place, std::size_t set) {
    return scored.sets[static_cast<std::size_t>(place) * kSets + set];
  };
  const Index tokens = scored.sentence.tokens();
  double sum = 0;
  if (begins_spaced(scored.sentence, word.begin)) {
    sum -= at(word.begin, kSpaced);
  } else if (word.begin == 0) {
    sum -= at(0, kUnspaced);
  }
  if (word.end == tokens || begins_spaced(scored.sentence, word.end)) sum += at(word.end, kSpaced);
  return sum;
}

std::optional<double> word_score(const ScoredSentence& scored, const WordTokens& word,
                                 const SpaceCorrection* correction) {
  if (word.begin == word.end) return std::nullopt;
  double sum = 0;
  for (Index t = word.begin; t < word.end; ++t) {
    const std::optional<double>& value = scored.log_probabilities[static_cast<std::size_t>(t)];
    if (!value) return std::nullopt;
    sum += *value;
  }
  if (correction == nullptr) return sum;
  const double corrected = sum + correction->of(scored, word);
  return std::isfinite(corrected) ? std::optional(corrected) : std::nullopt;
}

}  // namespace masque::evaluate
