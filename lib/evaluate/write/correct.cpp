#include "evaluate/write/correct.hpp"

#include <algorithm>
#include <bit>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/string/ascii.hpp"
#include "base/string/edit_distance.hpp"
#include "base/thread/interrupt.hpp"
#include "evaluate/score/batching.hpp"
#include "evaluate/score/length_policy.hpp"
#include "evaluate/score/sentence.hpp"
#include "evaluate/score/word_error_rate.hpp"
#include "evaluate/score/word_scores.hpp"
#include "evaluate/write/fill.hpp"
#include "evaluate/write/sampling.hpp"
#include "text/step/spaced_words.hpp"
#include "text/unicode/unicode.hpp"

namespace masque::evaluate {

namespace {

// Words of a line, with their tokens, and how a tokenizer reads them.

std::string trimmed(std::string_view text) {
  const text::Stretch place = text::trimmed(text, {0, text.size()});
  return std::string(text.substr(place.begin, place.end - place.begin));
}

/// Whether white space stands between byte `from` of a text and a token that ends at `to`, or in
/// front of its characters.
bool after_white_space(std::string_view text, std::size_t from, std::size_t to) {
  return from < to && text::trimmed(text, {from, to}).begin > from;
}

/// The code points of `text`, up to the first byte that is not UTF-8.
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

/// Whether `text` has a character that Unicode calls a letter.
bool has_letter(std::u32string_view text) {
  return std::ranges::any_of(text, [](char32_t c) { return text::is(c, text::kLetter); });
}

/// Whether `text` has white space.
bool has_white_space(std::u32string_view text) {
  return std::ranges::any_of(text, text::is_white_space);
}

/// What the tokens `ids` of `tokenizer` look like in a text, without white space at the ends: that
/// may belong to the first.
std::string shown(const text::Tokenizer& tokenizer, const std::vector<TokenId>& ids) {
  return trimmed(tokenizer.decode(ids, false));
}

/// `word` of a text as the normalizer of `tokenizer` leaves it, also where its tokens do not show
/// that ([UNK]).
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

/// The words of `text`, from left to right; none overlap. `sentence` are its tokens, with spans. A
/// word is a pre-token, cut where white space is in front of a token (pre-tokenizers that do not
/// split at spaces). Of one character that was read as several words (U+FDFB by NFKC) these are
/// one. Tokens are numbers of the sentence's ids.
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

/// The tokens of `sentence` for the part `place`, in bytes, of its line `text`: those that share a
/// character with it, and, of the same pre-token, those in front of them that have none. Numbers of
/// the sentence's ids; perhaps none.
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

/// `text` with a capital in front where the word `in_line` begins with one (A to Z) and the
/// tokenizer has lowered it: `as_read`.
std::string in_case(std::string text, std::string_view in_line, std::string_view as_read) {
  const bool lowered = !in_line.empty() && !as_read.empty() && is_ascii_capital(in_line[0]) &&
                       is_ascii_small(as_read[0]);
  if (lowered && !text.empty()) text[0] = ascii_capital(text[0]);
  return text;
}

// Candidates, and their probabilities.

constexpr char32_t kReplacement = U'\uFFFD';

std::uint64_t letters_of(std::u32string_view text) {
  std::uint64_t letters = 0;
  for (const char32_t c : text) letters |= std::uint64_t{1} << (c % 64);
  return letters;
}

constexpr double kNothing = -std::numeric_limits<double>::infinity();

double log_probability(std::span<const double> logits, TokenId id) {
  return logits[static_cast<std::size_t>(id)] - log_sum(logits);
}

}  // namespace

/// Tokens that may stand in the place of a word, and the log-probability of each piece.
struct Corrector::Spelling {
  std::string text;
  std::vector<TokenId> ids;
  std::vector<double> values;

  double log_probability() const {
    double sum = 0;
    for (const double value : values) sum += value;
    return sum;
  }
};

struct Corrector::Word {
  text::Span span;
  Index begin = 0, end = 0;         ///< of its pieces among the sentence's ids
  std::vector<Spelling> spellings;  ///< the first is the word's own; the others of several pieces
  // What may stand there, of one piece: all of the vocabulary but the word itself, or what is near.
  const std::vector<WordCandidates::Candidate>* vocabulary = nullptr;
  const std::vector<WordCandidates::Choice>* near = nullptr;
  bool begins_word = false;  ///< its first token
  std::u32string own;        ///< the word as the tokenizer reads it
  std::optional<WordCandidates::Choice> best;
  double best_log_probability = 0;
  // Of a detector:
  std::optional<Spelling> likeliest;  ///< a token for each piece
  double error_probability = 0;

  bool has_candidates() const {
    return (vocabulary != nullptr && !vocabulary->empty()) || (near != nullptr && !near->empty());
  }
  void choose(std::span<const double> logits);
};

/// Of each word of some lines what is near it, found once.
struct Corrector::Near {
  std::map<std::pair<bool, std::u32string>, std::vector<WordCandidates::Choice>> of;
};

/// The candidate with the highest log-probability less its cost.
void Corrector::Word::choose(std::span<const double> logits) {
  double most = kNothing;
  const auto look_at = [&](const WordCandidates::Choice& choice) {
    const double logit = logits[static_cast<std::size_t>(choice.id)];
    if (logit - choice.cost <= most) return;
    most = logit - choice.cost;
    best = choice;
    best_log_probability = logit;
  };
  if (near != nullptr) {
    for (const WordCandidates::Choice& choice : *near) look_at(choice);
  } else if (vocabulary != nullptr) {
    for (const WordCandidates::Candidate& candidate : *vocabulary) {
      if (candidate.begins_word == begins_word && candidate.text != own) look_at({candidate.id, 0});
    }
  }
  if (best) best_log_probability = best_log_probability - log_sum(logits);
}

Corrector::Corrector(const model::Model& model, const text::Tokenizer& tokenizer,
                     CorrectOptions options)
    : model_(model), tokenizer_(tokenizer), options_(std::move(options)) {
  check_filling(model.design());
  MASQUE_CHECK(!options_.one_pass || !options_.detector);
  if (options_.detector) {
    special_.resize(static_cast<std::size_t>(model.design().vocab_size), true);
    for (std::size_t i = 0; i < std::min(special_.size(), tokenizer.size()); ++i) {
      const auto id = static_cast<TokenId>(i);
      special_[i] = tokenizer.is_special(id) || tokenizer.token(id).empty();
    }
  }
  // The model says itself what should stand there, whichever token it is.
  if (options_.confusions || (options_.detector && !options_.edit_distance)) return;
  candidates_ = WordCandidates(tokenizer, model.design().vocab_size, options_.edit_distance);
}

const std::vector<WordCandidates::Choice>& Corrector::near(const Word& word, Near& found) const {
  const auto [entry, is_new] = found.of.try_emplace({word.begins_word, word.own});
  if (is_new) entry->second = candidates_.near(word.begins_word, word.own, options_.edit_cost);
  return entry->second;
}

/// The sets' words as the tokenizer reads them in the place of the word.
void Corrector::add_confusions(const Line& line, const std::vector<std::string>& others,
                               Word& word) const {
  const auto limit = token_limit(model_.design(), 0);
  for (const std::string& other : others) {
    std::string text = line.text;
    text.replace(word.span.begin, word.span.end - word.span.begin, other);
    const Sentence sentence = encode_sentence(tokenizer_, text, {});
    if (limit && sentence.size() > *limit) continue;
    // What stands around it must be read as before.
    const Index longer = sentence.size() - line.sentence.size();
    const Index end = word.end + longer;
    const bool same = end > word.begin &&
                      std::equal(sentence.ids.begin(), sentence.ids.begin() + word.begin,
                                 line.sentence.ids.begin()) &&
                      std::equal(sentence.ids.begin() + end, sentence.ids.end(),
                                 line.sentence.ids.begin() + word.end);
    if (!same) continue;
    std::vector<TokenId> ids(sentence.ids.begin() + word.begin, sentence.ids.begin() + end);
    if (ids == word.spellings[0].ids) continue;
    if (options_.detector && ids.size() != word.spellings[0].ids.size()) continue;
    word.spellings.push_back({other, ids, std::vector<double>(ids.size())});
  }
}

/// A word that may be corrected, as it stands; nothing for what has no letter and for special
/// tokens.
std::optional<Corrector::Word> Corrector::own_word(const Line& line,
                                                   const WordTokens& tokens) const {
  const std::vector<TokenId>& all = line.sentence.ids;
  const std::vector<TokenId> ids(all.begin() + tokens.begin, all.begin() + tokens.end);
  const auto stays = [&](TokenId id) {
    return tokenizer_.is_special(id) && id != tokenizer_.roles().unk;
  };
  const std::string_view in_line =
      std::string_view(line.text).substr(tokens.place.begin, tokens.place.end - tokens.place.begin);
  const std::u32string letters = characters(in_line);
  if (ids.empty() || std::ranges::any_of(ids, stays) || !has_letter(letters) ||
      has_white_space(letters))
    return std::nullopt;
  Word word{.span = {static_cast<std::uint32_t>(tokens.place.begin),
                     static_cast<std::uint32_t>(tokens.place.end)},
            .begin = tokens.begin,
            .end = tokens.end,
            .spellings = {},
            .begins_word = tokenizer_.begins_word(ids[0]),
            .own = {}};
  std::string text = normalized(tokenizer_, in_line);
  word.own = characters(text);
  word.spellings.push_back({std::move(text), ids, std::vector<double>(ids.size())});
  return word;
}

std::vector<Corrector::Word> Corrector::words_of(const Line& line, Near& found) const {
  std::vector<Word> words;
  if (options_.confusions) {
    for (const text::Stretch& spaced : text::spaced_words(line.text)) {
      throw_if_interrupted();
      const records::ConfusionSets::Confusion confusion = options_.confusions->confusion_of(
          std::string_view(line.text).substr(spaced.begin, spaced.end - spaced.begin));
      if (confusion.others.empty()) continue;
      const text::Stretch place{spaced.begin + confusion.place.begin,
                                spaced.begin + confusion.place.end};
      auto word = own_word(line, tokens_of(line.sentence, line.text, place));
      if (!word) continue;
      add_confusions(line, confusion.others, *word);
      words.push_back(std::move(*word));
    }
    return words;
  }
  for (const WordTokens& tokens : words_apart(line.sentence, line.text)) {
    throw_if_interrupted();
    auto word = own_word(line, tokens);
    if (!word) continue;
    const bool several = word->end - word->begin > 1;
    if (options_.detector && (several || !options_.edit_distance)) {
      word->likeliest = Spelling{{}, std::vector<TokenId>(word->spellings[0].ids.size()), {}};
      word->likeliest->values.resize(word->likeliest->ids.size());
    } else if (options_.edit_distance) {
      word->near = &near(*word, found);
    } else {
      word->vocabulary = &candidates_.all();
    }
    words.push_back(std::move(*word));
  }
  return words;
}

/// The likeliest token that may stand in a text.
void Corrector::choose_likeliest(std::span<const double> logits, std::size_t piece,
                                 Word& word) const {
  double most = kNothing;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    if (special_[i] || logits[i] <= most) continue;
    most = logits[i];
    word.likeliest->ids[piece] = static_cast<TokenId>(i);
  }
  word.likeliest->values[piece] = most - log_sum(logits);
}

/// The passes over one line, and where their numbers go.
class Corrector::Jobs {
 public:
  Jobs(const Corrector& corrector, const Sentence& sentence, JobRunner& runner)
      : corrector_(corrector), sentence_(sentence), options_(corrector.options_), runner_(runner) {}

  /// `words` must stay until all jobs have run.
  void add(std::vector<Word>& words) {
    if (options_.detector) return add_detection(words);
    for (Word& word : words) {
      const bool whole = word.spellings[0].ids.size() == 1;
      if (!options_.one_pass) add_hidden(word, word.spellings[0], whole ? &word : nullptr);
      for (Spelling& spelling : std::span(word.spellings).subspan(1)) {
        options_.one_pass ? add_seen(word, spelling) : add_hidden(word, spelling, nullptr);
      }
      if (!whole && word.has_candidates()) add_candidates(word);
    }
    if (options_.one_pass) add_pass(words);
  }

 private:
  /// The sentence with `ids` for [begin, end).
  void run(Index begin, Index end, std::span<const TokenId> ids, std::vector<Index> rows,
           TakeLogits take, TakeDetections take_detections = {}) {
    Job job;
    const auto put = [&](const auto& all, auto& out, const auto& middle) {
      out.assign(all.begin(), all.begin() + begin);
      out.insert(out.end(), middle.begin(), middle.end());
      out.insert(out.end(), all.begin() + end, all.end());
    };
    put(sentence_.ids, job.ids, ids);
    if (!sentence_.segments.empty()) {
      const Index segment = sentence_.segments[static_cast<std::size_t>(begin)];
      put(sentence_.segments, job.segments, std::vector<Index>(ids.size(), segment));
    }
    if (options_.mask_of) job.mask = options_.mask_of(job.ids);
    job.rows = std::move(rows);
    job.take = std::move(take);
    job.take_detections = std::move(take_detections);
    runner_.add(std::move(job));
  }

  /// A pass for each piece, which hides it and those after it; of the only piece of `chosen` also
  /// its best candidate.
  void add_hidden(const Word& word, Spelling& spelling, Word* chosen) {
    for (std::size_t k = 0; k < spelling.ids.size(); ++k) {
      std::vector<TokenId> hidden = spelling.ids;
      std::fill(hidden.begin() + static_cast<Index>(k), hidden.end(), options_.mask);
      run(word.begin, word.end, hidden, {word.begin + static_cast<Index>(k)},
          [&spelling, chosen, k](std::size_t /*row*/, auto logits) {
            spelling.values[k] = log_probability(logits, spelling.ids[k]);
            if (chosen != nullptr) chosen->choose(logits);
          });
    }
  }

  /// One pass with all pieces in their places.
  void add_seen(const Word& word, Spelling& spelling) {
    std::vector<Index> rows(spelling.ids.size());
    std::iota(rows.begin(), rows.end(), word.begin);
    run(word.begin, word.end, spelling.ids, std::move(rows),
        [&spelling](std::size_t k, auto logits) {
          spelling.values[k] = log_probability(logits, spelling.ids[k]);
        });
  }

  /// One pass with one hidden token for a word of several pieces.
  void add_candidates(Word& word) {
    run(word.begin, word.end, std::span(&options_.mask, 1), {word.begin},
        [&word](std::size_t /*row*/, auto logits) { word.choose(logits); });
  }

  /// One pass for the own pieces of all words.
  void add_pass(std::vector<Word>& words) {
    std::vector<Index> rows;
    std::vector<std::pair<Word*, std::size_t>> pieces;
    for (Word& word : words) {
      for (std::size_t k = 0; k < word.spellings[0].ids.size(); ++k) {
        rows.push_back(word.begin + static_cast<Index>(k));
        pieces.emplace_back(&word, k);
      }
    }
    if (rows.empty()) return;
    run(0, 0, {}, std::move(rows), [pieces](std::size_t row, auto logits) {
      const auto [word, k] = pieces[row];
      Spelling& own = word->spellings[0];
      own.values[k] = log_probability(logits, own.ids[k]);
      if (own.ids.size() == 1) word->choose(logits);
    });
  }

  /// A model with a detector gives all values of a line in one pass.
  void add_detection(std::vector<Word>& words) {
    std::vector<Index> rows;
    std::vector<std::pair<Word*, std::size_t>> pieces;
    for (Word& word : words) {
      for (Index i = word.begin; i < word.end; ++i) {
        rows.push_back(i);
        pieces.emplace_back(&word, static_cast<std::size_t>(i - word.begin));
      }
    }
    if (rows.empty()) return;
    run(
        0, 0, {}, std::move(rows),
        [pieces, &corrector = corrector_](std::size_t row, auto logits) {
          const auto [word, k] = pieces[row];
          for (Spelling& spelling : word->spellings)
            spelling.values[k] = log_probability(logits, spelling.ids[k]);
          if (word->likeliest) corrector.choose_likeliest(logits, k, *word);
          if (word->has_candidates()) word->choose(logits);
        },
        [&words](std::span<const double> probabilities) {
          for (Word& word : words) {
            const auto begin = probabilities.begin() + word.begin;
            word.error_probability = *std::max_element(begin, begin + (word.end - word.begin));
          }
        });
  }

  const Corrector& corrector_;
  const Sentence& sentence_;
  const CorrectOptions& options_;
  JobRunner& runner_;
};

/// The likeliest pieces as a replacement; nothing if they are the word's own, several words, or too
/// many edits away.
void Corrector::take_likeliest(const Word& word, CheckedWord& out, std::string& text) const {
  const Spelling& own = word.spellings[0];
  if (!word.likeliest || word.likeliest->ids == own.ids) return;
  std::string other = shown(tokenizer_, word.likeliest->ids);
  const std::u32string letters = characters(other);
  if (letters.empty() || has_white_space(letters)) return;
  if (options_.edit_distance) {
    const int edits = edit_distance(letters, characters(own.text));
    if (edits > *options_.edit_distance) return;
    out.edit_cost = edits * options_.edit_cost;
  }
  out.replacement_log_probability = word.likeliest->log_probability();
  text = std::move(other);
}

/// When all numbers are there.
CheckedWord Corrector::checked(const Line& line, const Word& word) const {
  CheckedWord out;
  out.span = word.span;
  out.log_probability = word.spellings[0].log_probability();
  if (options_.detector) out.error_probability = word.error_probability;
  std::string text;
  take_likeliest(word, out, text);
  if (word.best) {
    out.replacement_log_probability = word.best_log_probability;
    out.edit_cost = word.best->cost;
    text = shown(tokenizer_, {word.best->id});
  }
  for (const Spelling& spelling : std::span(word.spellings).subspan(1)) {
    const double value = spelling.log_probability();
    if (!text.empty() && value <= out.replacement_log_probability) continue;
    out.replacement_log_probability = value;
    text = spelling.text;
  }
  out.replacement = in_case(std::move(text), std::string_view(line.text).substr(word.span.begin),
                            word.spellings[0].text);
  return out;
}

std::vector<std::vector<CheckedWord>> Corrector::check(std::span<const Line> lines) const {
  JobRunner runner(model_, options_.batch_tokens);
  Near found;
  std::vector<std::vector<Word>> words;
  words.reserve(lines.size());  // jobs point to what is in it
  for (const Line& line : lines) {
    throw_if_interrupted();
    words.push_back(words_of(line, found));
    Jobs(*this, line.sentence, runner).add(words.back());
  }
  runner.run();
  std::vector<std::vector<CheckedWord>> out(lines.size());
  for (std::size_t i = 0; i < lines.size(); ++i) {
    for (const Word& word : words[i]) out[i].push_back(checked(lines[i], word));
  }
  return out;
}

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

WordCandidates::WordCandidates(const text::Tokenizer& tokenizer, Index size,
                               std::optional<int> edit_distance)
    : edit_distance_(edit_distance.value_or(0)) {
  const text::TokenizerParts& parts = tokenizer.parts();
  for (Index i = 0; i < std::min(static_cast<Index>(tokenizer.size()), size); ++i) {
    const auto id = static_cast<TokenId>(i);
    if (tokenizer.is_special(id) || tokenizer.token(id).empty()) continue;
    const bool begins = tokenizer.begins_word(id);
    // "##" says that a piece is no word; a missing "Ġ" only that no space is in front.
    if (!begins && parts.word_mark == text::WordMark::kContinuation) continue;
    // With it in front, too: else a piece of words ("ing").
    if (!begins && !tokenizer.find(parts.word_prefix + std::string(tokenizer.token(id)))) continue;
    std::u32string text = characters(shown(tokenizer, {id}));
    // Of a byte-level vocabulary some pieces are part of a character.
    if (!has_letter(text) || has_white_space(text) || text.find(kReplacement) != text.npos)
      continue;
    if (edit_distance) {
      if (by_length_.size() <= text.size()) by_length_.resize(text.size() + 1);
      by_length_[text.size()].push_back(all_.size());
    }
    const std::uint64_t letters = letters_of(text);
    all_.push_back({id, begins, std::move(text), letters});
  }
}

std::vector<WordCandidates::Choice> WordCandidates::near(bool begins_word,
                                                         const std::u32string& word,
                                                         double edit_cost) const {
  std::vector<Choice> out;
  const auto most = static_cast<std::size_t>(edit_distance_);
  const std::uint64_t letters = letters_of(word);
  const std::size_t size = word.size();
  const std::size_t lengths = std::min(by_length_.size(), size + most + 1);
  for (std::size_t length = size - std::min(size, most); length < lengths; ++length) {
    for (const std::size_t at : by_length_[length]) {
      const Candidate& candidate = all_[at];
      if (candidate.begins_word != begins_word || candidate.text == word) continue;
      // An edit makes at most one letter appear and one disappear: most words need no table.
      const int appear = std::popcount(candidate.letters & ~letters);
      const int disappear = std::popcount(letters & ~candidate.letters);
      if (std::max(appear, disappear) > edit_distance_) continue;
      const int edits = edit_distance(candidate.text, word, edit_distance_);
      if (edits <= edit_distance_) out.push_back({candidate.id, edits * edit_cost});
    }
  }
  std::ranges::sort(out, {}, &Choice::id);
  return out;
}

namespace {

using Words = std::vector<std::string_view>;

double share(std::uint64_t part, std::uint64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

}  // namespace

WantedWords wanted_words(std::span<const std::string_view> text,
                         std::span<const std::string_view> reference) {
  WantedWords out;
  out.words.resize(text.size());
  if (text.size() == reference.size()) {
    std::ranges::copy(reference, out.words.begin());
    return out;
  }
  for (const WordPair& pair : align_words(reference, text)) {
    if (!pair.hypothesis) ++out.missing;
    if (pair.hypothesis && pair.reference) out.words[*pair.hypothesis] = reference[*pair.reference];
  }
  return out;
}

double CorrectionCount::precision() const { return share(right, done); }
double CorrectionCount::recall() const { return share(right, wanted); }
double CorrectionCount::f1() const { return share(2 * right, done + wanted); }

void CorrectionCounts::add(std::string_view text, std::string_view output,
                           std::string_view reference) {
  const Words before = split_words(text);
  const Words after = split_words(output);
  MASQUE_CHECK(before.size() == after.size());
  const WantedWords wanted = wanted_words(before, split_words(reference));
  bool changed = false, detected = wanted.missing == 0, corrected = detected, wrong = !detected;
  word_detection.wanted += wanted.missing;
  word_correction.wanted += wanted.missing;
  for (std::size_t i = 0; i < before.size(); ++i) {
    const bool was_wrong = wanted.words[i] != before[i];
    const bool is_changed = after[i] != before[i];
    const bool is_right = wanted.words[i] == after[i];
    word_detection.wanted += was_wrong ? 1 : 0;
    word_detection.done += is_changed ? 1 : 0;
    word_detection.right += was_wrong && is_changed ? 1 : 0;
    word_correction.right += is_changed && is_right ? 1 : 0;
    changed |= is_changed;
    wrong |= was_wrong;
    detected &= was_wrong == is_changed;
    corrected &= is_right;
  }
  word_correction.wanted = word_detection.wanted;
  word_correction.done = word_detection.done;
  sentence_detection.wanted += wrong ? 1 : 0;
  sentence_detection.done += changed ? 1 : 0;
  sentence_detection.right += wrong && detected ? 1 : 0;
  sentence_correction.right += wrong && corrected ? 1 : 0;
  sentence_correction.wanted = sentence_detection.wanted;
  sentence_correction.done = sentence_detection.done;
}

}  // namespace masque::evaluate
