#include "probe/score/word_error_rate.hpp"

#include <limits>

#include "base/split.hpp"
#include "probe/score/word_alignment.hpp"

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

}  // namespace masque::probe
