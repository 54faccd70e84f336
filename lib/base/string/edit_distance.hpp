// How far apart two texts are, and suggestions for mistyped names.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace masque {

/// Whether two neighbours that changed places are one edit, or two replaced characters.
enum class Exchanges {
  kOneEdit,  ///< optimal string alignment: what was exchanged is not edited again
  kTwoEdits  ///< Levenshtein distance
};

/// Returns the edit distance of `a` and `b` over bytes, with exchanges of neighbours counted as
/// `how` says. What both have at their begin and end costs O(1) a character; the rest costs
/// O(⌈|a| / 64⌉·|b|), a being the shorter one, with memory O(|b|) (bits in a word: Hyyrö 2003, "A
/// bit-vector algorithm for computing Levenshtein and Damerau edit distances"; blocks of words:
/// Myers 1999). Throws Interrupted.
int edit_distance(std::string_view a, std::string_view b, Exchanges how = Exchanges::kOneEdit);
/// Returns the same of `a` and `b` over code points, or the numbers of words, `how` as above.
int edit_distance(std::u32string_view a, std::u32string_view b,
                  Exchanges how = Exchanges::kOneEdit);

/// Returns the distance of `a` and `b`, an exchange being one edit, if it is at most `most` (from
/// 0), else `most` + 1. Cost O(1) where the lengths alone differ by more, else as above.
int edit_distance(std::u32string_view a, std::u32string_view b, int most);

/// Returns the length of the longest sequence that `a` and `b` have in common, other characters
/// between allowed. Costs as edit_distance(): bits in a word by Hyyrö 2004, "Bit-parallel
/// LCS-length computation revisited". Throws Interrupted.
std::size_t common_subsequence(std::u32string_view a, std::u32string_view b);

/// Returns the one of the `candidates` nearest to `word`, if it is near enough to be what was
/// meant: its edit distance is at most a third of the length of `word` in bytes, or 1. The first of
/// several equally near ones; never an empty one.
std::optional<std::string> nearest(std::string_view word,
                                   std::span<const std::string_view> candidates);

/// Returns the end of a message about `word`: "; did you mean 'mlm'?" with the nearest of the
/// `candidates`, escaped; empty where none is near.
std::string did_you_mean(std::string_view word, std::span<const std::string_view> candidates);

}  // namespace masque
