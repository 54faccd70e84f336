// Suggestions for mistyped names.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace masque {

/// Levenshtein distance with transpositions of neighbours, over bytes. Cost O(|a|·|b|).
int edit_distance(std::string_view a, std::string_view b);
/// The same over code points.
int edit_distance(std::u32string_view a, std::u32string_view b);
/// The same if it is at most `most`, else `most` + 1; stops as soon as that is known.
int edit_distance(std::u32string_view a, std::u32string_view b, int most);

/// The candidate nearest to `word`, if it is near enough to be what was meant: at most a third of
/// its length away. The first of several equally near ones.
std::optional<std::string> nearest(std::string_view word,
                                   std::span<const std::string_view> candidates);

}  // namespace masque
