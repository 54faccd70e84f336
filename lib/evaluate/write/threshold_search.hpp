// Finds the best threshold for corrections on texts with known corrections.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "evaluate/write/correct.hpp"

namespace masque::evaluate {

/// Tries every threshold that makes a difference. Memory: the words with replacements. Not
/// thread-safe.
class ThresholdSearch {
 public:
  /// Adds `text`, its `words` as a Corrector checked them, and the `reference` that it should be.
  /// Each word lies between blanks, and its replacement has none. Cost: the texts are aligned once.
  void add(std::string_view text, std::span<const CheckedWord> words, std::string_view reference);

  /// A threshold and what it gives.
  struct Best {
    double threshold = 0;   ///< nats
    CorrectionCount words;  ///< corrected words at this threshold, as CorrectionCounts counts them
  };
  /// The threshold with the highest F1 of corrected words; of equal ones the highest, and between
  /// two gains their middle. Nothing where no threshold has an F1 above 0. Cost O(n log n) of n
  /// replacements. Throws Interrupted.
  std::optional<Best> best() const;

 private:
  /// A word between blanks, and those of the Corrector within it, with their places in it.
  struct Word {
    std::string text;
    std::optional<std::string> wanted;
    std::vector<CheckedWord> checked;
  };

  std::vector<Word> words_;
  std::vector<std::pair<double, std::size_t>> gains_;  ///< and the number of the word
  std::uint64_t wanted_ = 0;                           ///< errors of all texts
};

}  // namespace masque::evaluate
