#include "base/edit_distance.hpp"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <vector>

namespace masque {

namespace {

/// `most` + 1 where it is more.
template <class Text>
int distance_of(Text a, Text b, int most = std::numeric_limits<int>::max()) {
  std::vector<int> before_last;
  std::vector<int> last(b.size() + 1);
  std::vector<int> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) last[j] = static_cast<int>(j);
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = static_cast<int>(i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      row[j] =
          std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], before_last[j - 2] + 1);
      }
    }
    // A later row has no lower number: each is made of this row's by edits.
    if (*std::ranges::min_element(row) > most) return most + 1;
    before_last.swap(last);
    last.swap(row);
    row.resize(b.size() + 1);
  }
  return last[b.size()] > most ? most + 1 : last[b.size()];
}

}  // namespace

int edit_distance(std::string_view a, std::string_view b) { return distance_of(a, b); }

int edit_distance(std::u32string_view a, std::u32string_view b) { return distance_of(a, b); }

int edit_distance(std::u32string_view a, std::u32string_view b, int most) {
  const auto longer = std::max(a.size(), b.size());
  const auto shorter = std::min(a.size(), b.size());
  if (longer - shorter > static_cast<std::size_t>(most)) return most + 1;
  return distance_of(a, b, most);
}

std::optional<std::string> nearest(std::string_view word,
                                   std::span<const std::string_view> candidates) {
  std::string_view best;
  int best_distance = std::max(2, static_cast<int>(word.size()) / 3 + 1);
  for (const std::string_view candidate : candidates) {
    // Long lists of long names: lengths alone rule most of them out.
    const auto gap = static_cast<int>(candidate.size()) - static_cast<int>(word.size());
    if (std::abs(gap) >= best_distance) continue;
    const int distance = edit_distance(word, candidate);
    if (distance < best_distance) {
      best_distance = distance;
      best = candidate;
    }
  }
  if (best.empty()) return std::nullopt;
  return std::string(best);
}

}  // namespace masque
