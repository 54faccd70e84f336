#include "evaluate/score/word_error_rate.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>

#include "base/string/split.hpp"
#include "base/thread/interrupt.hpp"

namespace masque::evaluate {

std::vector<WordPair> align_words(std::span<const std::string_view> reference,
                                  std::span<const std::string_view> hypothesis) {
  const std::size_t width = hypothesis.size() + 1;
  // cost[i * width + j]: the first i words of the reference against the first j of the hypothesis.
  std::vector<std::uint32_t> cost((reference.size() + 1) * width);
  const auto at = [&](std::size_t i, std::size_t j) -> std::uint32_t& {
    return cost[i * width + j];
  };
  const auto step = [&](std::size_t i, std::size_t j) {
    return at(i - 1, j - 1) + (reference[i - 1] == hypothesis[j - 1] ? 0 : 1);
  };
  for (std::size_t i = 0; i <= reference.size(); ++i) {
    throw_if_interrupted();
    for (std::size_t j = 0; j < width; ++j) {
      at(i, j) = i == 0 || j == 0 ? static_cast<std::uint32_t>(i + j)
                                  : std::min({step(i, j), at(i - 1, j) + 1, at(i, j - 1) + 1});
    }
  }
  std::vector<WordPair> pairs;
  for (std::size_t i = reference.size(), j = hypothesis.size(); i > 0 || j > 0;) {
    if (i > 0 && j > 0 && at(i, j) == step(i, j)) {
      pairs.push_back({--i, --j});
    } else if (i > 0 && at(i, j) == at(i - 1, j) + 1) {
      pairs.push_back({--i, std::nullopt});
    } else {
      pairs.push_back({std::nullopt, --j});
    }
  }
  std::ranges::reverse(pairs);
  return pairs;
}

double WordErrors::rate() const {
  return words == 0 ? std::numeric_limits<double>::quiet_NaN()
                    : static_cast<double>(errors()) / static_cast<double>(words);
}

void WordErrors::add(const WordErrors& other) {
  words += other.words;
  substitutions += other.substitutions;
  deletions += other.deletions;
  insertions += other.insertions;
}

std::vector<std::string_view> split_words(std::string_view text) {
  return split_at_blanks(text, " \t\r\n");
}

WordErrors word_errors(std::string_view reference, std::string_view hypothesis) {
  const std::vector<std::string_view> a = split_words(reference);
  const std::vector<std::string_view> b = split_words(hypothesis);
  WordErrors result;
  result.words = a.size();
  for (const WordPair& pair : align_words(a, b)) {
    if (!pair.hypothesis) {
      ++result.deletions;
    } else if (!pair.reference) {
      ++result.insertions;
    } else if (a[*pair.reference] != b[*pair.hypothesis]) {
      ++result.substitutions;
    }
  }
  return result;
}

}  // namespace masque::evaluate
