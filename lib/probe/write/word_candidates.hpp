// Words of a vocabulary that are one token: what may stand in the place of a word.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "text/tokenizer.hpp"

namespace masque::probe {

/// Immutable, thread-safe.
class WordCandidates {
 public:
  struct Candidate {
    TokenId id = 0;
    bool begins_word = false;   ///< its token stands at the begin of a word
    std::u32string text;        ///< without the space that may belong to the token
    std::uint64_t letters = 0;  ///< a bit for each character modulo 64
  };
  /// One that may stand for a word.
  struct Choice {
    TokenId id = 0;
    double cost = 0;  ///< of its edits, in nats
  };

  /// None.
  WordCandidates() = default;
  /// The tokens below `size` that are words: with a letter, no piece and no special token. With
  /// `edit_distance` near() may be called. Cost: a look at every token.
  WordCandidates(const text::Tokenizer& tokenizer, Index size,
                 std::optional<int> edit_distance = std::nullopt);

  /// By id.
  const std::vector<Candidate>& all() const { return all_; }

  /// Those at most edit_distance edits away from a word, but not itself, by id; each edit costs
  /// `edit_cost`. Cost: a look at every candidate of nearly the same length.
  std::vector<Choice> near(bool begins_word, const std::u32string& word, double edit_cost) const;

 private:
  std::vector<Candidate> all_;
  int edit_distance_ = 0;
  std::vector<std::vector<std::size_t>> by_length_;  ///< numbers of candidates
};

}  // namespace masque::probe
