// Scores of words and of regions of words: what their tokens add up to.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/name_table.hpp"
#include "probe/score/text_scorer.hpp"
#include "text/pattern.hpp"

namespace masque::probe {

/// What a word is.
enum class WordUnit {
  kSpace,      ///< what stands between white space
  kTokenizer,  ///< a pre-token of the tokenizer, as transformers' word_ids
};
/// "space", "tokenizer".
NameTable<WordUnit> word_unit_names();

/// A word or a region, and its tokens.
struct WordTokens {
  text::Stretch place;  ///< in bytes of the text, without white space at the ends
  Index begin = 0;      ///< tokens [begin, end) of the text
  Index end = 0;
};

/// The words of a text, from left to right. Every token belongs to one of them if there are any.
/// kSpace: a token belongs to the first word that ends after it begins, so white space to the word
/// that follows, at the end of the text to the last one. A word may have no token: one that the
/// tokenizer drops, or a second one that shares a token. kTokenizer: a special token that stands in
/// the text is a word; pre-tokens of white space are words, whose place is empty.
std::vector<WordTokens> words_of(const Sentence& sentence, std::string_view text, WordUnit unit);

/// Words next to each other that have the same label.
struct Region {
  std::string label;
  WordTokens tokens;
};

/// The regions of words; `labels` has a label for each of them, between white space. Throws
/// InputError (message only) for another number of labels.
std::vector<Region> regions_of(std::span<const WordTokens> words, std::string_view labels);

/// What corrects the scores of words for tokens that begin with the space in front of a word: the
/// tokens that a word can begin with, and others. If tokens begin with the space, the end of a word
/// is known only from the next token.
///
/// A word that such a token begins ends where the next one does, so its probability is that of its
/// tokens and of an end after them, given that the word before it has ended:
///   P(word) = Π P(token) · P(B after it) / P(B at its begin),
/// B: tokens with the space in front, or the end of text. The first word of a text, which has no
/// space, is divided by P(no space: another token, or the end) instead. At a place where a word
/// begins without the space (after a tab, say) nothing is corrected, neither of the word nor of the
/// one before it. Pimentel and Meister 2024, arXiv:2406.14561; Oh and Schuler 2024,
/// arXiv:2406.10851.
class SpaceCorrection {
 public:
  /// Throws InputError (message only) for a tokenizer that puts the space elsewhere.
  explicit SpaceCorrection(const text::Tokenizer& tokenizer);
  /// For ScoreOptions::sets.
  std::vector<TokenSet> sets() const { return {spaced_, unspaced_}; }
  /// What to add to the sum of the tokens of a word; not finite where that is not known.
  double of(const ScoredSentence& scored, const WordTokens& word) const;

 private:
  bool begins_spaced(const Sentence& sentence, Index token) const;

  TokenSet spaced_, unspaced_;
};

/// Σ log p over the tokens of a word, or region; with a correction, whose sets were scored, what it
/// says. Nothing for a word without tokens, with one that was not scored, or whose correction is
/// not known (its end was not read).
std::optional<double> word_score(const ScoredSentence& scored, const WordTokens& word,
                                 const SpaceCorrection* correction);

}  // namespace masque::probe
