// How often words occur, in bounded memory.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace masque::text {

/// A word and how often it occurs.
struct CountedWord {
  std::string text;         ///< the word
  std::uint64_t count = 0;  ///< its occurrences
};

/// Counts words and forgets rare ones when there are too many. For one thread.
class WordCounts {
 public:
  /// No words yet; prune() leaves at most `max_words` different ones.
  explicit WordCounts(std::size_t max_words) : max_words_(max_words) {}

  /// Adds `count` occurrences of `word`.
  void add(std::string_view word, std::uint64_t count = 1);
  /// Forgets the rarest words if there are more than the maximum. The result depends on where this
  /// is called, so it is called at places that depend on the text alone.
  void prune();

  /// All words: the most frequent first, equal ones in the order of their bytes.
  std::vector<CountedWord> sorted() const;
  /// Number of different words.
  std::size_t size() const { return counts_.size(); }
  /// A word that was forgotten occurred at most so often up to then; 0 if none was.
  std::uint64_t forgotten() const { return forgotten_; }

  /// Calls `use`(word, count) for all words, in no order.
  template <class F>
  void each(F use) const {
    for (const auto& [word, count] : counts_) use(word, count);
  }

 private:
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const {
      return std::hash<std::string_view>{}(text);
    }
  };
  std::unordered_map<std::string, std::uint64_t, Hash, std::equal_to<>> counts_;
  std::size_t max_words_;
  std::uint64_t forgotten_ = 0;
};

}  // namespace masque::text
