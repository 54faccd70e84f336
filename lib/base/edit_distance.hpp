// How far apart two texts are, and suggestions for mistyped names.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace masque {

/// Whether two neighbours that changed places are one edit, or two replaced characters.
enum class Exchanges { kOneEdit, kTwoEdits };

/// Levenshtein distance, by default with exchanges of neighbours as one edit (optimal string
/// alignment: what was exchanged is not edited again), over bytes. What both have at their begin
/// and end costs O(1) a character; of the rest, O(|b|) if the shorter has at most 64 characters
/// (bits in a word: Hyyrö 2003, "A bit-vector algorithm for computing Levenshtein and Damerau edit
/// distances"), else O(|a|·|b|) with memory O(|a| + |b|). Throws Interrupted.
int edit_distance(std::string_view a, std::string_view b, Exchanges how = Exchanges::kOneEdit);
/// The same over code points, or the numbers of words.
int edit_distance(std::u32string_view a, std::u32string_view b,
                  Exchanges how = Exchanges::kOneEdit);

/// The distance, exchanges one edit, if it is at most `most`, else `most` + 1.
int edit_distance(std::u32string_view a, std::u32string_view b, int most);

/// Length of the longest sequence that both texts have, other characters between allowed. Costs as
/// edit_distance(): bits in a word by Hyyrö 2004, "Bit-parallel LCS-length computation revisited".
std::size_t common_subsequence(std::u32string_view a, std::u32string_view b);

/// The candidate nearest to `word`, if it is near enough to be what was meant: at most a third of
/// its length away. The first of several equally near ones.
std::optional<std::string> nearest(std::string_view word,
                                   std::span<const std::string_view> candidates);

/// The end of a message: "; did you mean 'mlm'?"; empty where no candidate is near.
std::string did_you_mean(std::string_view word, std::span<const std::string_view> candidates);

}  // namespace masque
