// Which words of two texts stand for each other.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace masque::probe {

/// Numbers of two words that stand for each other, or of one that has no partner.
struct WordPair {
  std::optional<std::size_t> reference;
  std::optional<std::size_t> hypothesis;
};

/// All words, in order, by the fewest edits; of equally few the way that, from the end, prefers a
/// pair to a word of the reference alone, and that to one of the hypothesis alone. Words are
/// compared by bytes. Cost and memory O(|reference| · |hypothesis|); interruptible.
std::vector<WordPair> align_words(std::span<const std::string_view> reference,
                                  std::span<const std::string_view> hypothesis);

}  // namespace masque::probe
