// Counts of errors that were found and corrected.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace masque::probe {

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

}  // namespace masque::probe
