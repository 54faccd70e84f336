// Words of a text that a masked model finds unlikely, and likelier ones for their places.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/model.hpp"
#include "probe/score/sentence.hpp"
#include "probe/score/word_scores.hpp"
#include "records/confusion_sets.hpp"

namespace masque::probe {

struct CorrectOptions {
  /// One pass gives the probability of every token given the others (T-TA); else every word is
  /// hidden by mask tokens in passes of its own.
  bool one_pass = false;
  TokenId mask = 0;  ///< hides a token
  /// Only words of these sets are checked, against the others of their set. None: words of the
  /// vocabulary that are one token may stand for a word.
  std::shared_ptr<const records::ConfusionSets> confusions;
  /// Of the vocabulary only words at most so many edits away: insertion, deletion, substitution,
  /// swap of neighbours.
  std::optional<int> edit_distance;
  /// Nats that each edit costs a replacement: −log of how likely an error is, as in the noisy
  /// channel of Kernighan, Church and Gale 1990, doi:10.3115/997939.997975.
  double edit_cost = 0;
  Index batch_tokens = 8192;  ///< tokens run together
  /// The mask of a sequence, where its words decide it; may throw.
  std::function<mask::Mask(std::span<const TokenId> ids)> mask_of;
};

/// A line as text and as tokens.
struct Line {
  std::string text;
  Sentence sentence;  ///< of encode_sentence, with spans
};

/// A word and the one with the largest gain for its place. Log-probabilities are in nats, given the
/// rest of the line: of several pieces the sum of each one's, those before it in the word known,
/// those after it hidden too (Kauf and Ivanova 2023, arXiv:2305.10588); of one_pass all others
/// known.
struct CheckedWord {
  text::Span span;  ///< bytes of the line
  double log_probability = 0;
  std::string replacement;  ///< empty: nothing else may stand there
  double replacement_log_probability = 0;
  double edit_cost = 0;  ///< of all edits of the replacement

  /// Nats that speak for the replacement.
  double gain() const { return replacement_log_probability - edit_cost - log_probability; }
};

/// Checks lines with one model. Thread-safe.
class Corrector {
 public:
  /// Both must stay. Throws as check_filling(). Cost: a look at every token of the vocabulary.
  Corrector(const model::Model& model, const text::Tokenizer& tokenizer, CorrectOptions options);

  /// The words of each line that hold a letter, in order. A word is a pre-token of the tokenizer,
  /// without white space; with `confusions` what stands between white space, or the punctuation
  /// around it, if it is in a set, with all tokens that share a character with it.
  /// Results do not depend on the other lines nor on batch_tokens. Passes over a line: of a word of
  /// one piece 1, of n pieces n + 1, and n for each of the confusions of n ≥ 2 pieces; of one_pass
  /// 1 in all, 1 more for each word of several pieces, and 1 for each confusion of several. A
  /// replacement begins with a capital from A to Z where the word does and the tokenizer lowers
  /// it. Confusions that would make the line too long are left out. Memory: the lines, a batch, a
  /// number for each pass, and of edit_distance what is near each different word. Throws InputError
  /// as Model::run, and Interrupted.
  std::vector<std::vector<CheckedWord>> check(std::span<const Line> lines) const;

 private:
  struct Candidate {
    TokenId id = 0;
    bool begins_word = false;
    std::u32string text;
    std::uint64_t letters = 0;  ///< which there are: a bit for each, perhaps shared
  };
  /// One that may stand for a word.
  struct Choice {
    TokenId id = 0;
    double cost = 0;  ///< of its edits
  };
  struct Spelling;
  struct Word;
  struct Near;
  class Jobs;

  std::vector<Word> words_of(const Line& line, Near& found) const;
  std::optional<Word> own_word(const Line& line, const WordTokens& tokens) const;
  void add_confusions(const Line& line, const std::vector<std::string>& others, Word& word) const;
  const std::vector<Choice>& near(const Word& word, Near& found) const;
  CheckedWord checked(const Line& line, const Word& word) const;

  const model::Model& model_;
  const text::Tokenizer& tokenizer_;
  CorrectOptions options_;
  std::vector<Candidate> candidates_;                ///< by id
  std::vector<std::vector<std::size_t>> by_length_;  ///< of edit_distance: numbers of candidates
};

/// The line with the replacements that gain more than `threshold` nats.
std::string corrected(std::string_view text, std::span<const CheckedWord> words, double threshold);
inline std::string corrected(const Line& line, std::span<const CheckedWord> words,
                             double threshold) {
  return corrected(std::string_view(line.text), words, threshold);
}

}  // namespace masque::probe
