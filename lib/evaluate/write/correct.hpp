// Correction: words that are improbable under a masked model, or wrong according to a detector, and
// more probable replacements.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "evaluate/score/sentence.hpp"
#include "evaluate/score/word_scores.hpp"
#include "model/model.hpp"
#include "records/confusion_sets.hpp"
#include "text/tokenizer.hpp"

namespace masque::evaluate {

// Words of a vocabulary that are one token: what may stand in the place of a word.

/// The words of a vocabulary that are one token. Immutable, thread-safe.
class WordCandidates {
 public:
  /// A word of the vocabulary.
  struct Candidate {
    TokenId id = 0;             ///< its token
    bool begins_word = false;   ///< its token stands at the begin of a word
    std::u32string text;        ///< without the space that may belong to the token
    std::uint64_t letters = 0;  ///< a bit for each character modulo 64
  };
  /// One that may stand for a word.
  struct Choice {
    TokenId id = 0;   ///< its token
    double cost = 0;  ///< cost of its edits, in nats
  };

  /// None.
  WordCandidates() = default;
  /// The tokens of `tokenizer` below `size` that are words: with a letter, no piece and no special
  /// token. With `edit_distance` near() may be called. Cost: a look at every token.
  WordCandidates(const text::Tokenizer& tokenizer, Index size,
                 std::optional<int> edit_distance = std::nullopt);

  /// All of them by id: a reference into this object.
  const std::vector<Candidate>& all() const { return all_; }

  /// Those at most edit_distance edits away from `word`, but not itself, by id; `begins_word` says
  /// whether its first token stands at the begin of a word, as theirs must. Each edit costs
  /// `edit_cost` nats. Cost: a look at every candidate of nearly the same length.
  std::vector<Choice> near(bool begins_word, const std::u32string& word, double edit_cost) const;

 private:
  std::vector<Candidate> all_;
  int edit_distance_ = 0;
  std::vector<std::vector<std::size_t>> by_length_;  ///< numbers of candidates
};

// A word of a text with the best replacement for it, and the text with the replacements.

/// A word and its replacement with the largest gain. Log-probabilities are in nats, given the rest
/// of the line. For a word of several pieces it is the sum over the pieces, each given the pieces
/// before it, with those after it hidden (Kauf and Ivanova 2023, arXiv:2305.10588). With one_pass
/// each piece is given all others; with a detector it is given the unmasked line, including the
/// word.
struct CheckedWord {
  text::Span span;                         ///< bytes of the line
  double log_probability = 0;              ///< log-probability of the word itself
  std::string replacement;                 ///< empty: the word has no candidate
  double replacement_log_probability = 0;  ///< log-probability of the replacement in its place
  double edit_cost = 0;                    ///< edit cost of all edits of the replacement
  /// With a detector: the largest probability that a piece of the word is wrong.
  std::optional<double> error_probability;

  /// Gain of the replacement in nats, after the cost of edits.
  double gain() const { return replacement_log_probability - edit_cost - log_probability; }
};

/// `text` with the replacements that gain more than `threshold` nats. `words`, whose spans are
/// bytes of it, are from left to right and do not overlap.
std::string corrected(std::string_view text, std::span<const CheckedWord> words, double threshold);

// The corrector.

/// How Corrector checks words.
struct CorrectOptions {
  /// One pass gives the probability of every token given the others (T-TA); else every word is
  /// hidden by mask tokens in passes of its own.
  bool one_pass = false;
  TokenId mask = 0;  ///< hides a token
  /// The model has a detector and was trained to correct (Soft-Masked BERT): one pass over a line
  /// gives the probability that each piece is wrong, and the probability of every token as its
  /// correction. Not with `one_pass`.
  bool detector = false;
  /// Only words of these sets are checked, against the others of their set. None: the candidates
  /// are the words of the vocabulary that are one token.
  std::shared_ptr<const records::ConfusionSets> confusions;
  /// Only words of the vocabulary at most this many edits away: insertion, deletion, substitution,
  /// swap of neighbours.
  std::optional<int> edit_distance;
  /// Cost of each edit in nats: −log of the probability of an error, as in the noisy channel of
  /// Kernighan, Church and Gale 1990, doi:10.3115/997939.997975.
  double edit_cost = 0;
  Index batch_tokens = 8192;  ///< tokens run together
  /// The mask of a sequence, where its words decide it; may throw.
  std::function<mask::Mask(std::span<const TokenId> ids)> mask_of;
};

/// A line as text and as tokens.
struct Line {
  std::string text;   ///< valid UTF-8
  Sentence sentence;  ///< result of encode_sentence, with spans
};

/// `line` with the replacements of `words` that gain more than `threshold` nats.
inline std::string corrected(const Line& line, std::span<const CheckedWord> words,
                             double threshold) {
  return corrected(std::string_view(line.text), words, threshold);
}

/// Checks lines with one model. Thread-safe.
class Corrector {
 public:
  /// Checks with `model` and its `tokenizer` as `options` say; both must outlive the object. Throws
  /// as check_filling(). Cost: linear in the vocabulary.
  Corrector(const model::Model& model, const text::Tokenizer& tokenizer, CorrectOptions options);

  /// The words of each of `lines` that hold a letter, in order. A word is a pre-token of the
  /// tokenizer, without white space; with `confusions` what stands between white space, or the
  /// punctuation around it, if it is in a set, with all tokens that share a character with it.
  /// Results do not depend on the other lines nor on batch_tokens. Passes over a line: of a word of
  /// one piece 1, of n pieces n + 1, and n for each of the confusions of n ≥ 2 pieces; of one_pass
  /// 1 in all, 1 more for each word of several pieces, and 1 for each confusion of several; of a
  /// detector 1 in all. That one has replacements of as many pieces as the word alone: the
  /// likeliest token for each piece (no special one) where it is not restricted, or within
  /// edit_distance of a word of several pieces; and confusions of as many. A replacement begins
  /// with a capital from A to Z where the word does and the tokenizer lowers it. Confusions that
  /// would make the line too long are left out. Memory: the lines, a batch, a number for each pass,
  /// and of edit_distance what is near each different word. Throws InputError as Model::run, and
  /// Interrupted.
  std::vector<std::vector<CheckedWord>> check(std::span<const Line> lines) const;

 private:
  struct Spelling;
  struct Word;
  struct Near;
  class Jobs;

  std::vector<Word> words_of(const Line& line, Near& found) const;
  std::optional<Word> own_word(const Line& line, const WordTokens& tokens) const;
  void add_confusions(const Line& line, const std::vector<std::string>& others, Word& word) const;
  const std::vector<WordCandidates::Choice>& near(const Word& word, Near& found) const;
  void choose_likeliest(std::span<const double> logits, std::size_t piece, Word& word) const;
  void take_likeliest(const Word& word, CheckedWord& out, std::string& text) const;
  CheckedWord checked(const Line& line, const Word& word) const;

  const model::Model& model_;
  const text::Tokenizer& tokenizer_;
  CorrectOptions options_;
  WordCandidates candidates_;
  std::vector<bool> special_;  ///< for a detector: tokens that replace none
};

// Counts of errors that were found and corrected.

/// Corrections that were made and that were needed.
struct CorrectionCount {
  std::uint64_t right = 0;   ///< made and correct
  std::uint64_t done = 0;    ///< made
  std::uint64_t wanted = 0;  ///< needed

  double precision() const;  ///< right / done; 0 of none
  double recall() const;     ///< right / wanted; 0 of none
  double f1() const;         ///< their harmonic mean; 0 where nothing is right
};

/// The correct word for each word of a text; none for an extra word.
struct WantedWords {
  std::vector<std::optional<std::string_view>> words;  ///< one a word of the text
  std::uint64_t missing = 0;  ///< words of the reference that the text lacks
};

/// The correct words for those of `text`: word by word where `reference` has as many, else as
/// align_words() has it. Views of the reference's text.
WantedWords wanted_words(std::span<const std::string_view> text,
                         std::span<const std::string_view> reference);

/// Counts of texts, each in words between spaces and as a whole.
struct CorrectionCounts {
  CorrectionCount word_detection;   ///< right: a wrong word was changed
  CorrectionCount word_correction;  ///< right: … into the correct word
  CorrectionCount
      sentence_detection;  ///< right: of a wrong text the wrong words alone were changed
  CorrectionCount sentence_correction;  ///< right: a wrong text was changed into the reference

  /// Adds `text`, its corrected version `output`, and the `reference`. A text with as many words as
  /// the reference is compared word by word, others as aligned by align_words(): an extra word
  /// counts as wrong, a missing word as an error that cannot be found. `output` has as many words
  /// as `text`.
  void add(std::string_view text, std::string_view output, std::string_view reference);
};

}  // namespace masque::evaluate
