// Scores of words and of regions of words: sums over their tokens.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/string/name_table.hpp"
#include "evaluate/score/text_scorer.hpp"
#include "text/step/pattern.hpp"

namespace masque::evaluate {

/// What a word is.
enum class WordUnit {
  kSpace,      ///< what stands between white space
  kTokenizer,  ///< a pre-token of the tokenizer, as transformers' word_ids
};
/// The names of all units: "space", "tokenizer".
NameTable<WordUnit> word_unit_names();

/// A word or a region, and its tokens.
struct WordTokens {
  text::Stretch place;  ///< in bytes of the text, without white space at the ends
  Index begin = 0;      ///< first token, among those of the text
  Index end = 0;        ///< after the last one
};

/// The words of `text` by `unit`, from left to right. `sentence` are its tokens, with spans. Every
/// token belongs to one of them if there are any. kSpace: a token belongs to the first word that
/// ends after it begins, so white space to the word that follows, at the end of the text to the
/// last one. A word may have no token: one that the tokenizer drops, or a second one that shares a
/// token. kTokenizer: a special token that stands in the text is a word; pre-tokens of white space
/// are words, whose place is empty.
std::vector<WordTokens> words_of(const Sentence& sentence, std::string_view text, WordUnit unit);

/// Words next to each other that have the same label.
struct Region {
  std::string label;  ///< label of all its words
  WordTokens tokens;  ///< from the first word to the last
};

/// The regions of `words`; `labels` has a label for each of them, between white space. Throws
/// InputError (message only) for another number of labels.
std::vector<Region> regions_of(std::span<const WordTokens> words, std::string_view labels);

/// Corrects the scores of words for tokenizers whose tokens begin with the space before a word:
/// there the end of a word is known only from the next token. Holds the set of tokens that a word
/// can begin with, and the set of the others.
///
/// The probability of a word includes that it ends after its tokens, given that the word before it
/// has ended:
///   P(word) = Π P(token) · P(B after it) / P(B at its begin),
/// B: tokens with the space in front, or the end of text. The first word of a text has no space, so
/// it is divided by P(no space: another token, or the end) instead. Where a word begins without the
/// space (after a tab, for example), neither that word nor the one before it is corrected. Pimentel
/// and Meister 2024, arXiv:2406.14561; Oh and Schuler 2024, arXiv:2406.10851.
class SpaceCorrection {
 public:
  /// Reads the vocabulary of `tokenizer`. Throws InputError (message only) if its tokens do not
  /// begin with the space.
  explicit SpaceCorrection(const text::Tokenizer& tokenizer);
  /// For ScoreOptions::sets: tokens with the space in front, and the others; eos is in both.
  std::vector<TokenSet> sets() const { return {spaced_, unspaced_}; }
  /// The number to add, in nats, to the sum over the tokens of `word`, of a sentence `scored` with
  /// sets(); not finite where it is not known.
  double of(const ScoredSentence& scored, const WordTokens& word) const;

 private:
  bool begins_spaced(const Sentence& sentence, Index token) const;

  TokenSet spaced_, unspaced_;
};

/// Σ log p over the tokens of `word`, a word or region of `scored`, plus the `correction` unless it
/// is nullptr (its sets must have been scored). No value for a word without tokens, with a token
/// that was not scored, or with an unknown correction (its end was not read).
std::optional<double> word_score(const ScoredSentence& scored, const WordTokens& word,
                                 const SpaceCorrection* correction);

}  // namespace masque::evaluate
