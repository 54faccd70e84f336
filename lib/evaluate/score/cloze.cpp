#include "evaluate/score/cloze.hpp"

#include <algorithm>
#include <array>
#include <set>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/string/split.hpp"

namespace masque::evaluate {

namespace {

constexpr std::string_view kMaskPlace = "[MASK]";
constexpr std::array<std::string_view, 2> kTextPlaces{"X", "Y"};

/// No word of a text has this number.
constexpr std::uint32_t kClozeWord = text::kNoWord - 1;

bool is_word_character(char c) {
  return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_';
}

bool stands_alone(std::string_view pattern, std::size_t at) {
  return (at == 0 || !is_word_character(pattern[at - 1])) &&
         (at + 1 == pattern.size() || !is_word_character(pattern[at + 1]));
}

bool is_blank(std::string_view text) {
  return text.find_first_not_of(" \t\n\r\f\v") == std::string_view::npos;
}

template <class T>
void erase_places(std::vector<T>& list, const std::vector<bool>& gone) {
  if (list.empty()) return;
  std::size_t i = 0;
  std::erase_if(list, [&](const T&) { return gone[i++]; });
}

/// The tokens of a text in the pattern: those with a byte of it that are not the word's.
std::vector<Index> tokens_in(const ClozeSentence& cloze, const text::Stretch& place) {
  const Sentence& sentence = cloze.sentence;
  std::vector<Index> tokens;
  for (Index i = sentence.prefix; i < sentence.size() - sentence.suffix; ++i) {
    const text::Span& span = sentence.spans[static_cast<std::size_t>(i)];
    const bool of_word = i >= cloze.begin && i < cloze.end;
    if (!of_word && span.begin < place.end && span.end > place.begin) tokens.push_back(i);
  }
  return tokens;
}

/// Finds the tokens of the word. Throws InputError.
void find_word(const ClozePattern::Filled& filled, ClozeSentence& cloze) {
  const Sentence& sentence = cloze.sentence;
  const auto [begin, end] = filled.word;
  const std::string_view text = filled.text;
  cloze.begin = cloze.end = 0;
  for (Index i = sentence.prefix; i < sentence.size() - sentence.suffix; ++i) {
    const text::Span& span = sentence.spans[static_cast<std::size_t>(i)];
    if (span.begin >= end || span.end <= begin) continue;
    if (span.end > end ||
        (span.begin < begin && !is_blank(text.substr(span.begin, begin - span.begin)))) {
      throw InputError(fmt::format(
          "'{}' shares the token '{}' with the text next to it, expected separate tokens",
          escape(text.substr(begin, end - begin)),
          escape(sentence.pieces[static_cast<std::size_t>(i)])));
    }
    if (cloze.end == 0) cloze.begin = i;
    cloze.end = i + 1;
    cloze.sentence.words[static_cast<std::size_t>(i)] = kClozeWord;
  }
  if (cloze.end == 0) {
    throw InputError(fmt::format("'{}' has no tokens, expected at least one",
                                 escape(text.substr(begin, end - begin))));
  }
}

/// Takes `excess` tokens out of the texts. Throws InputError if they have fewer.
void shorten(const ClozePattern::Filled& filled, LengthPolicy::Kind policy, Index excess,
             ClozeSentence& cloze) {
  std::array<std::vector<Index>, 2> tokens;
  for (std::size_t t = 0; t < filled.texts.size(); ++t)
    tokens[t] = tokens_in(cloze, filled.texts[t]);
  std::array<std::span<const Index>, 2> left{tokens[0], tokens[1]};
  Sentence& sentence = cloze.sentence;
  const Index all = std::ssize(left[0]) + std::ssize(left[1]);
  if (all < excess) {
    throw InputError(fmt::format("the pattern without its texts has {} tokens, expected at most {}",
                                 sentence.size() - all, sentence.size() - excess));
  }
  std::vector<bool> gone(sentence.ids.size(), false);
  for (Index i = 0; i < excess; ++i) {
    std::span<const Index>& longer = left[1].size() >= left[0].size() ? left[1] : left[0];
    const bool at_end = policy == LengthPolicy::Kind::kFirst;
    gone[static_cast<std::size_t>(at_end ? longer.back() : longer.front())] = true;
    longer = longer.subspan(at_end ? 0 : 1, longer.size() - 1);
  }
  const Index before = std::count(gone.begin(), gone.begin() + cloze.begin, true);
  erase_places(sentence.ids, gone);
  erase_places(sentence.pieces, gone);
  erase_places(sentence.segments, gone);
  erase_places(sentence.words, gone);
  erase_places(sentence.spans, gone);
  cloze.left_out = excess;
  cloze.begin -= before;
  cloze.end -= before;
}

[[noreturn]] void refuse_pattern(std::string_view pattern, std::string_view problem) {
  throw UsageError(fmt::format("{}: '{}' {}", field("pattern"), escape(pattern), problem));
}

}  // namespace

ClozePattern::ClozePattern(std::string_view pattern, std::string_view mask_token) {
  std::array<int, 3> count{};
  std::size_t from = 0;
  const auto add = [&](std::size_t place, std::size_t at, std::size_t size) {
    parts_.push_back({std::string(pattern.substr(from, at - from)), place});
    ++count[place];
    from = at + size;
  };
  for (std::size_t at = 0; at < pattern.size();) {
    const std::string_view rest = pattern.substr(at);
    std::size_t size = rest.starts_with(kMaskPlace) ? kMaskPlace.size() : 0;
    if (size == 0 && !mask_token.empty() && rest.starts_with(mask_token)) size = mask_token.size();
    if (size > 0) {
      add(kWord, at, size);
    } else {
      size = 1;
      for (std::size_t t = 0; t < kTextPlaces.size(); ++t) {
        if (rest.starts_with(kTextPlaces[t]) && stands_alone(pattern, at)) add(t, at, size);
      }
    }
    at += size;
  }
  end_ = pattern.substr(from);
  if (count[kWord] != 1) {
    refuse_pattern(pattern, count[kWord] == 0 ? "has no [MASK], expected one"
                                              : "has several [MASK], expected one");
  }
  if (count[0] != 1)
    refuse_pattern(pattern, count[0] == 0 ? "has no X, expected one for the text"
                                          : "has several X, expected one");
  if (count[1] > 1) refuse_pattern(pattern, "has several Y, expected at most one");
  texts_ = count[1] == 1 ? 2 : 1;
}

ClozePattern::Filled ClozePattern::fill(std::span<const std::string> texts,
                                        std::string_view word) const {
  MASQUE_CHECK(texts.size() == texts_);
  Filled out;
  out.texts.resize(texts_);
  for (const Part& part : parts_) {
    out.text += part.before;
    const std::size_t begin = out.text.size();
    out.text += part.place == kWord ? word : std::string_view(texts[part.place]);
    (part.place == kWord ? out.word : out.texts[part.place]) =
        text::Stretch{begin, out.text.size()};
  }
  out.text += end_;
  return out;
}

std::vector<VerbalizedLabel> parse_verbalizer(std::string_view text) {
  std::vector<VerbalizedLabel> labels;
  std::set<std::string, std::less<>> names;
  std::set<std::string, std::less<>> words;
  const auto refuse = [&](std::string_view problem) {
    throw UsageError(fmt::format("{}: '{}': {}", field("labels"), escape(text), problem));
  };
  for (const std::string_view part : split(text, ',')) {
    const auto [first, rest] = split_at_first(part, '=');
    VerbalizedLabel label;
    for (const std::string_view word : split(rest.value_or(first), '|')) {
      label.words.emplace_back(trim(word));
      if (label.words.back().empty()) refuse("an empty word, expected LABEL or NAME=WORD|WORD");
      if (!words.insert(label.words.back()).second)
        refuse(
            fmt::format("the word '{}' occurs twice, expected once", escape(label.words.back())));
    }
    label.name = rest ? std::string(trim(first)) : label.words.front();
    if (label.name.empty()) refuse("an empty name, expected LABEL or NAME=WORD|WORD");
    if (!names.insert(label.name).second)
      refuse(fmt::format("the label '{}' occurs twice, expected once", escape(label.name)));
    labels.push_back(std::move(label));
  }
  if (labels.size() < 2) refuse("one label, expected at least two, separated by commas");
  return labels;
}

ClozeEncoder::ClozeEncoder(const text::Tokenizer& tokenizer, ClozePattern pattern,
                           const ClozeOptions& options)
    : tokenizer_(tokenizer), pattern_(std::move(pattern)), options_(options) {
  const LengthPolicy::Kind policy = options_.policy.kind;
  MASQUE_CHECK(refuses_long(options_.policy) || policy == LengthPolicy::Kind::kFirst ||
               policy == LengthPolicy::Kind::kLast);
}

ClozeSentence ClozeEncoder::encode(std::span<const std::string> texts, std::string_view word,
                                   Index room) const {
  const ClozePattern::Filled filled = pattern_.fill(texts, word);
  ClozeSentence cloze = encode(filled, options_.sentence, room);
  if (!options_.mask) return cloze;
  for (const text::Stretch& place : filled.texts) {
    for (const Index i : tokens_in(cloze, place)) {
      if (cloze.sentence.ids[static_cast<std::size_t>(i)] != *options_.mask) continue;
      throw InputError(fmt::format("the text has a {}, expected none ({} reads it as text)",
                                   escape(tokenizer_.token(*options_.mask)),
                                   field("no_special_in_text")));
    }
  }
  return cloze;
}

ClozeSentence ClozeEncoder::encode_content_free(const std::string& text, std::string_view word,
                                                Index room) const {
  SentenceOptions options = options_.sentence;
  options.special_in_text = true;
  std::string own = text;
  if (options_.mask) {
    const std::string_view mask = tokenizer_.token(*options_.mask);
    for (std::size_t at = own.find(kMaskPlace); at != std::string::npos;
         at = own.find(kMaskPlace, at + mask.size()))
      own.replace(at, kMaskPlace.size(), mask);
  }
  return encode(pattern_.fill(std::vector(pattern_.texts(), own), word), options, room);
}

ClozeSentence ClozeEncoder::encode(const ClozePattern::Filled& filled,
                                   const SentenceOptions& options, Index room) const {
  ClozeSentence cloze;
  cloze.sentence = encode_sentence(tokenizer_, filled.text, options);
  find_word(filled, cloze);
  if (!options_.longest) return cloze;
  const Index size = cloze.sentence.size() - cloze.tokens() + std::max(room, cloze.tokens());
  const Index excess = size - *options_.longest;
  if (excess <= 0) return cloze;
  if (refuses_long(options_.policy)) throw InputError(too_long(size, *options_.longest));
  shorten(filled, options_.policy.kind, excess, cloze);
  return cloze;
}

}  // namespace masque::evaluate
