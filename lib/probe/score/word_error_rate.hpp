// Word errors of a hypothesis against a reference.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace masque::probe {

/// Edits that turn a reference into a hypothesis.
struct WordErrors {
  std::uint64_t words = 0;  ///< of the reference
  std::uint64_t substitutions = 0;
  std::uint64_t deletions = 0;
  std::uint64_t insertions = 0;

  std::uint64_t errors() const { return substitutions + deletions + insertions; }
  /// NaN without words.
  double rate() const;
  void add(const WordErrors& other);
};

/// Words between spaces, tabs and line ends.
std::vector<std::string_view> split_words(std::string_view text);

/// The fewest edits, each at cost 1, in the way of align_words(): its cost and memory.
/// Interruptible.
WordErrors word_errors(std::string_view reference, std::string_view hypothesis);

}  // namespace masque::probe
