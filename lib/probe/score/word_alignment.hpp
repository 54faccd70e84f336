// Aligns the words of two texts.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace masque::probe {

/// Indices of two aligned words, or of one word without a partner.
struct WordPair {
  std::optional<std::size_t> reference;   ///< of the reference; none: the hypothesis inserts a word
  std::optional<std::size_t> hypothesis;  ///< of the hypothesis; none: it leaves a word out
};

/// All words of `reference` and `hypothesis`, in order, by the fewest edits; of equally few the way
/// that, from the end, prefers a pair to a word of the reference alone, and that to one of the
/// hypothesis alone. Words are compared by bytes. Cost and memory O(|reference| · |hypothesis|);
/// interruptible.
std::vector<WordPair> align_words(std::span<const std::string_view> reference,
                                  std::span<const std::string_view> hypothesis);

}  // namespace masque::probe
