#include "probe/score/word_error_rate.hpp"

#include <algorithm>
#include <limits>

#include "base/split.hpp"

namespace masque::probe {

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
  const std::size_t width = b.size() + 1;
  // cost[i * width + j]: the first i words of the reference against the first j of the hypothesis.
  std::vector<std::uint32_t> cost((a.size() + 1) * width);
  const auto at = [&](std::size_t i, std::size_t j) -> std::uint32_t& {
    return cost[i * width + j];
  };
  for (std::size_t i = 0; i <= a.size(); ++i) {
    for (std::size_t j = 0; j <= b.size(); ++j) {
      if (i == 0 || j == 0) {
        at(i, j) = static_cast<std::uint32_t>(i + j);
        continue;
      }
      const std::uint32_t diagonal = at(i - 1, j - 1) + (a[i - 1] == b[j - 1] ? 0 : 1);
      at(i, j) = std::min({diagonal, at(i - 1, j) + 1, at(i, j - 1) + 1});
    }
  }
  WordErrors result;
  result.words = a.size();
  for (std::size_t i = a.size(), j = b.size(); i > 0 || j > 0;) {
    const bool same = i > 0 && j > 0 && a[i - 1] == b[j - 1];
    if (i > 0 && j > 0 && at(i, j) == at(i - 1, j - 1) + (same ? 0 : 1)) {
      result.substitutions += same ? 0 : 1;
      --i;
      --j;
    } else if (i > 0 && at(i, j) == at(i - 1, j) + 1) {
      ++result.deletions;
      --i;
    } else {
      ++result.insertions;
      --j;
    }
  }
  return result;
}

}  // namespace masque::probe
