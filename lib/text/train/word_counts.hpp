// How often words occur, in bounded memory.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace masque::text {

struct CountedWord {
  std::string text;
  std::uint64_t count = 0;
};

/// Counts words and forgets rare ones when there are too many.
class WordCounts {
 public:
  explicit WordCounts(std::size_t max_words) : max_words_(max_words) {}

  void add(std::string_view word, std::uint64_t count = 1);
  /// Forgets the rarest words if there are more than the maximum. The result depends on where this
  /// is called, so it is called at places that depend on the text alone.
  void prune();

  /// All words: the most frequent first, equal ones in the order of their bytes.
  std::vector<CountedWord> sorted() const;
  std::size_t size() const { return counts_.size(); }
  /// A word that was forgotten occurred at most so often up to then; 0 if none was.
  std::uint64_t forgotten() const { return forgotten_; }

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
