// Vocabularies by joining the most frequent pairs: byte-pair encoding, and WordPiece made the same
// way.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "text/train/word_counts.hpp"

namespace masque::text {

/// What train_pairs() makes.
struct PairTrainerOptions {
  std::size_t size = 30000;           ///< tokens, special ones and the alphabet included
  std::vector<std::string> special;   ///< first in the vocabulary
  std::vector<std::string> alphabet;  ///< always in the vocabulary
  std::size_t max_alphabet = 1000;    ///< characters, the most frequent ones; besides `alphabet`
  std::string prefix;                 ///< of pieces inside a word ("##")
  std::uint64_t min_count = 2;        ///< a rarer pair is not joined
  std::size_t max_characters = 100;   ///< longer words are left out
};

/// What train_pairs() made.
struct TrainedVocabulary {
  std::vector<std::string> tokens;                          ///< id = index
  std::vector<std::pair<std::string, std::string>> merges;  ///< best first
};

/// Trains on `words` (as WordCounts::sorted gives them) with `options`. Of equally frequent pairs
/// the one with the smaller ids is joined first: the result depends on the words and their counts
/// alone. A word with a character outside of the alphabet is left out. Special tokens, and
/// `alphabet` with the most frequent characters as far as `size` allows, come first.
TrainedVocabulary train_pairs(const std::vector<CountedWord>& words,
                              const PairTrainerOptions& options);

}  // namespace masque::text
