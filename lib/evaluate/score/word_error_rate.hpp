// Word errors of a hypothesis against a reference.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace masque::evaluate {

/// Indices of two aligned words, or of one word without a partner.
struct WordPair {
  /// Word of the reference; none: the hypothesis inserts a word.
  std::optional<std::size_t> reference;
  std::optional<std::size_t> hypothesis;  ///< word of the hypothesis; none: it leaves a word out
};

/// All words of `reference` and `hypothesis`, in order, by the fewest edits; of equally few the way
/// that, from the end, prefers a pair to a word of the reference alone, and that to one of the
/// hypothesis alone. Words are compared by bytes. Cost and memory O(|reference| · |hypothesis|);
/// interruptible.
std::vector<WordPair> align_words(std::span<const std::string_view> reference,
                                  std::span<const std::string_view> hypothesis);

/// Edits that turn a reference into a hypothesis.
struct WordErrors {
  std::uint64_t words = 0;          ///< number of words of the reference
  std::uint64_t substitutions = 0;  ///< words that are others in the hypothesis
  std::uint64_t deletions = 0;      ///< words that the hypothesis leaves out
  std::uint64_t insertions = 0;     ///< words of the hypothesis alone

  /// All edits.
  std::uint64_t errors() const { return substitutions + deletions + insertions; }
  /// errors() / words: above 1 where the hypothesis inserts many. NaN without words.
  double rate() const;
  /// Adds the counts of `other`.
  void add(const WordErrors& other);
};

/// The words of `text` between spaces, tabs and line ends: views into it.
std::vector<std::string_view> split_words(std::string_view text);

/// The fewest edits from `reference` to `hypothesis`, each at cost 1, in the way of align_words():
/// its cost and memory. Interruptible.
WordErrors word_errors(std::string_view reference, std::string_view hypothesis);

}  // namespace masque::evaluate
