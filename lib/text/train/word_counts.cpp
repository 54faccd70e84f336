#include "text/train/word_counts.hpp"

#include <algorithm>

namespace masque::text {

void WordCounts::add(std::string_view word, std::uint64_t count) {
  if (const auto found = counts_.find(word); found != counts_.end()) {
    found->second += count;
  } else {
    counts_.emplace(word, count);
  }
}

void WordCounts::prune() {
  while (counts_.size() > max_words_) {
    ++forgotten_;
    std::erase_if(counts_, [this](const auto& entry) { return entry.second <= forgotten_; });
  }
}

std::vector<CountedWord> WordCounts::sorted() const {
  std::vector<CountedWord> words;
  words.reserve(counts_.size());
  for (const auto& [text, count] : counts_) words.push_back({text, count});
  std::sort(words.begin(), words.end(), [](const CountedWord& a, const CountedWord& b) {
    return a.count != b.count ? a.count > b.count : a.text < b.text;
  });
  return words;
}

}  // namespace masque::text
