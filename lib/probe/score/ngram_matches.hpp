// Counts the n-grams of a text that occur in reference texts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace masque::probe {

/// Gives words the numbers 0, 1 …, equal ones the same, and forgets them. Reusable: memory is kept.
class WordNumbers {
 public:
  /// Forgets everything, and makes room for `words` calls of number().
  void start(std::size_t words);
  /// The number of `word`, the next one if it is new. The text of `word` must stay where it is
  /// until the next start().
  char32_t number(std::string_view word);

 private:
  struct Slot {
    std::string_view word;
    std::uint64_t round = 0;  ///< of another than the current one: free
    char32_t number = 0;
  };
  std::vector<Slot> slots_;  ///< a power of two, at most half full
  std::uint64_t round_ = 0;
  char32_t next_ = 0;
};

/// Counts n-grams of texts of symbols: code points, or numbers of words. For one thread; reusable.
class NgramMatcher {
 public:
  /// `matches`[n − 1] for n = 1 … matches.size(): Σ over different n-grams of the least of how
  /// often `hypothesis` has it and how often that of `references` with most of it does (BLEU's
  /// clipped counts: Papineni 2002, doi:10.3115/1073083.1073135). Exact: n-grams are compared, not
  /// their hashes. Cost O(orders · symbols).
  void match(std::u32string_view hypothesis, std::span<const std::u32string_view> references,
             std::span<std::uint32_t> matches);

 private:
  struct Slot {
    std::uint64_t key = 0;
    std::uint64_t round = 0;
    std::uint32_t id = 0;
  };
  std::size_t slot_of(std::uint64_t key) const;
  std::uint32_t intern(std::uint64_t key);

  std::vector<Slot> slots_;  ///< a power of two, at most half full
  std::uint64_t round_ = 0;
  unsigned shift_ = 0;
  std::uint32_t next_ = 0;
  std::vector<std::uint32_t> hypothesis_;  ///< at each place the number of the n-gram there
  std::vector<std::uint32_t> references_;  ///< of all references, one after the other
  std::vector<std::uint32_t> most_;        ///< of each n-gram, in one reference
  std::vector<std::uint32_t> count_;
};

}  // namespace masque::probe
