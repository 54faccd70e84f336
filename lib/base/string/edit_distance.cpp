#include "base/string/edit_distance.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstdlib>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/escape.hpp"
#include "base/thread/interrupt.hpp"

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

// What a block of rows hands to the one below in a column of the table: the distance is one more
// than in the column before, or one less; the first half of an exchange of neighbours.
constexpr unsigned kHandsMore = 1, kHandsLess = 2, kHandsExchange = 4;

/// `size` bytes of `value`, on the stack if they are few.
class ColumnBytes {
 public:
  ColumnBytes(std::size_t size, std::uint8_t value) {
    if (size > few_.size()) many_.resize(size, value);
    if (many_.empty()) few_.fill(value);
    all_ = many_.empty() ? few_.data() : many_.data();
  }
  ColumnBytes(const ColumnBytes&) = delete;
  ColumnBytes& operator=(const ColumnBytes&) = delete;
  ~ColumnBytes() = default;
  std::uint8_t& operator[](std::size_t i) { return all_[i]; }

 private:
  std::array<std::uint8_t, kWordBits> few_{};
  std::vector<std::uint8_t> many_;
  std::uint8_t* all_ = nullptr;
};

/// The table of distances in blocks of 64 rows, its rows being `a`: of a block the columns from
/// left to right, as differences between neighbours, in Hyyrö's names. Every block goes on from
/// what the one above it has handed down in each column.
template <class Text>
int distance_by_bits(Text a, Text b, Exchanges how) {
  ColumnBytes handed(b.size(), kHandsMore);
  auto distance = static_cast<int>(a.size());
  for (; !a.empty(); a.remove_prefix(std::min(a.size(), kWordBits))) {
    throw_if_interrupted();
    const Text block = a.substr(0, kWordBits);
    const bool ends = block.size() == a.size();
    const PlaceBits<Text> places(block);
    const std::size_t last = block.size() - 1;
    std::uint64_t vp = ~std::uint64_t{0};
    std::uint64_t vn = 0;
    std::uint64_t d0 = 0;
    std::uint64_t matches_before = 0;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const unsigned from_above = handed[j];
      const std::uint64_t more = from_above & kHandsMore;
      const std::uint64_t less = (from_above & kHandsLess) / kHandsLess;
      const std::uint64_t matches = places.of(b[j]);
      const std::uint64_t half = how == Exchanges::kOneEdit ? ~d0 & matches : 0;
      const std::uint64_t exchanged =
          ((half << 1) | ((from_above & kHandsExchange) / kHandsExchange)) & matches_before;
      const std::uint64_t same = matches | less;
      d0 = ((((same & vp) + vp) ^ vp) | same | vn) | exchanged;
      const std::uint64_t hp = vn | ~(d0 | vp);
      const std::uint64_t hn = d0 & vp;
      const auto bit = [&](std::uint64_t bits) { return static_cast<unsigned>(bits >> last) & 1U; };
      if (ends) distance += static_cast<int>(bit(hp)) - static_cast<int>(bit(hn));
      handed[j] = static_cast<std::uint8_t>(bit(hp) * kHandsMore | bit(hn) * kHandsLess |
                                            bit(half) * kHandsExchange);
      const std::uint64_t hp_shifted = (hp << 1) | more;
      vp = (hn << 1) | less | ~(d0 | hp_shifted);
      vn = hp_shifted & d0;
      matches_before = matches;
    }
  }
  return distance;
}

template <class Text>
int distance_of(Text a, Text b, Exchanges how) {
  trim_common(a, b);
  if (a.size() > b.size()) std::swap(a, b);
  if (a.empty()) return static_cast<int>(b.size());
  return distance_by_bits(a, b, how);
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
  // What an addition in a block of 64 rows carries to the next one, in each column.
  ColumnBytes carried(b.size(), 0);
  std::size_t length = common;
  for (; !a.empty(); a.remove_prefix(std::min(a.size(), kWordBits))) {
    throw_if_interrupted();
    const std::u32string_view block = a.substr(0, kWordBits);
    const PlaceBits<std::u32string_view> places(block);
    // A bit that is 0: the length of the common sequence grows there.
    std::uint64_t steps = ~std::uint64_t{0};
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::uint64_t found = steps & places.of(b[j]);
      const std::uint64_t sum = steps + found;
      const std::uint64_t carry = carried[j];
      carried[j] = static_cast<std::uint8_t>(sum < steps || sum + carry < sum);
      steps = (sum + carry) | (steps - found);
    }
    const std::uint64_t unused = block.size() == kWordBits ? 0 : ~std::uint64_t{0} << block.size();
    length += static_cast<std::size_t>(std::popcount(~(steps | unused)));
  }
  return length;
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
