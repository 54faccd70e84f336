// Words of a vocabulary that are one token: what may stand in the place of a word.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "text/tokenizer.hpp"

namespace masque::probe {

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
    double cost = 0;  ///< of its edits, in nats
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

}  // namespace masque::probe
