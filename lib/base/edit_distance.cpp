#include "base/edit_distance.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstdlib>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/escape.hpp"
#include "base/interrupt.hpp"

namespace masque {

namespace {

constexpr std::size_t kWordBits = 64;

/// Of each character of a text of at most 64, the places where it stands, as bits.
template <class Text>
class PlaceBits {
 public:
  explicit PlaceBits(Text text) {
    for (std::size_t i = 0; i < text.size(); ++i) {
      Slot& slot = slots_[find(text[i])];
      slot.key = code(text[i]);
      slot.bits |= std::uint64_t{1} << i;
    }
  }
  std::uint64_t of(typename Text::value_type c) const { return slots_[find(c)].bits; }

 private:
  struct Slot {
    std::uint32_t key = 0;
    std::uint64_t bits = 0;  ///< 0: free
  };
  static constexpr std::size_t kSlots = 2 * kWordBits;

  static std::uint32_t code(typename Text::value_type c) { return static_cast<std::uint32_t>(c); }
  std::size_t find(typename Text::value_type c) const {
    std::size_t at = (code(c) * 0x9E3779B1U) >> 25;
    while (slots_[at].bits != 0 && slots_[at].key != code(c)) at = (at + 1) % kSlots;
    return at;
  }

  std::array<Slot, kSlots> slots_{};
};

/// Takes away what both begin with and end with; returns how much that was.
template <class Text>
std::size_t trim_common(Text& a, Text& b) {
  const auto head = std::mismatch(a.begin(), a.end(), b.begin(), b.end());
  const auto begin = static_cast<std::size_t>(head.first - a.begin());
  a.remove_prefix(begin);
  b.remove_prefix(begin);
  const auto tail = std::mismatch(a.rbegin(), a.rend(), b.rbegin(), b.rend());
  const auto end = static_cast<std::size_t>(tail.first - a.rbegin());
  a.remove_suffix(end);
  b.remove_suffix(end);
  return begin + end;
}

/// Hyyrö's names: column j of the table of distances as differences between neighbours.
template <class Text>
int distance_by_bits(Text a, Text b, Exchanges how) {
  const PlaceBits<Text> places(a);
  const std::uint64_t last = std::uint64_t{1} << (a.size() - 1);
  std::uint64_t vp = ~std::uint64_t{0};
  std::uint64_t vn = 0;
  std::uint64_t d0 = 0;
  std::uint64_t matches_before = 0;
  int distance = static_cast<int>(a.size());
  for (const auto c : b) {
    const std::uint64_t matches = places.of(c);
    const std::uint64_t exchanged =
        how == Exchanges::kOneEdit ? (((~d0 & matches) << 1) & matches_before) : 0;
    d0 = ((((matches & vp) + vp) ^ vp) | matches | vn) | exchanged;
    const std::uint64_t hp = vn | ~(d0 | vp);
    const std::uint64_t hn = d0 & vp;
    if ((hp & last) != 0) ++distance;
    if ((hn & last) != 0) --distance;
    const std::uint64_t hp_shifted = (hp << 1) | 1;
    vp = (hn << 1) | ~(d0 | hp_shifted);
    vn = hp_shifted & d0;
    matches_before = matches;
  }
  return distance;
}

template <class Text>
int distance_by_rows(Text a, Text b, Exchanges how) {
  std::vector<int> before_last(b.size() + 1);
  std::vector<int> last(b.size() + 1);
  std::vector<int> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = static_cast<int>(j);
  for (std::size_t i = 1; i <= a.size(); ++i) {
    throw_if_interrupted();
    std::swap(before_last, last);
    std::swap(last, row);
    row[0] = static_cast<int>(i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      row[j] =
          std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      if (how == Exchanges::kOneEdit && i > 1 && j > 1 && a[i - 1] == b[j - 2] &&
          a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], before_last[j - 2] + 1);
      }
    }
  }
  return row[b.size()];
}

template <class Text>
int distance_of(Text a, Text b, Exchanges how) {
  trim_common(a, b);
  if (a.size() > b.size()) std::swap(a, b);
  if (a.empty()) return static_cast<int>(b.size());
  return a.size() <= kWordBits ? distance_by_bits(a, b, how) : distance_by_rows(a, b, how);
}

std::size_t subsequence_by_rows(std::u32string_view a, std::u32string_view b) {
  std::vector<std::size_t> last(b.size() + 1);
  std::vector<std::size_t> row(b.size() + 1);
  for (const char32_t c : a) {
    throw_if_interrupted();
    std::swap(last, row);
    for (std::size_t j = 1; j <= b.size(); ++j)
      row[j] = c == b[j - 1] ? last[j - 1] + 1 : std::max(last[j], row[j - 1]);
  }
  return row[b.size()];
}

}  // namespace

int edit_distance(std::string_view a, std::string_view b, Exchanges how) {
  return distance_of(a, b, how);
}

int edit_distance(std::u32string_view a, std::u32string_view b, Exchanges how) {
  return distance_of(a, b, how);
}

std::size_t common_subsequence(std::u32string_view a, std::u32string_view b) {
  const std::size_t common = trim_common(a, b);
  if (a.size() > b.size()) std::swap(a, b);
  if (a.empty()) return common;
  if (a.size() > kWordBits) return common + subsequence_by_rows(a, b);
  const PlaceBits<std::u32string_view> places(a);
  // A bit that is 0: the length of the common sequence grows there.
  std::uint64_t steps = ~std::uint64_t{0};
  for (const char32_t c : b) {
    const std::uint64_t found = steps & places.of(c);
    steps = (steps + found) | (steps - found);
  }
  const std::uint64_t unused = a.size() == kWordBits ? 0 : ~std::uint64_t{0} << a.size();
  return common + static_cast<std::size_t>(std::popcount(~(steps | unused)));
}

int edit_distance(std::u32string_view a, std::u32string_view b, int most) {
  const std::size_t longer = std::max(a.size(), b.size());
  const std::size_t shorter = std::min(a.size(), b.size());
  if (longer - shorter > static_cast<std::size_t>(most)) return most + 1;
  return std::min(edit_distance(a, b), most + 1);
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

std::string did_you_mean(std::string_view word, std::span<const std::string_view> candidates) {
  const auto near = nearest(word, candidates);
  return near ? fmt::format("; did you mean '{}'?", escape(*near)) : std::string();
}

}  // namespace masque
