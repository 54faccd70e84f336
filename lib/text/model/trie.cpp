#include "text/model/trie.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <tuple>

#include "base/error.hpp"

namespace masque::text {

namespace {

/// A key with its first eight bytes as a number, which decides most comparisons.
struct SortKey {
  std::uint64_t front = 0;
  std::uint32_t index = 0;
};

std::uint64_t front_of(std::string_view text) {
  std::array<unsigned char, 8> bytes{};
  std::ranges::copy(text.substr(0, 8), bytes.begin());
  std::uint64_t out = 0;
  for (const unsigned char byte : bytes) out = out << 8 | byte;
  return out;
}

}  // namespace

/// Places nodes depth first, from sorted keys. Free units form a list through `next_`.
class TrieBuilder {
 public:
  TrieBuilder(std::vector<Trie::Unit>& units, std::span<const TrieKey> keys)
      : units_(units), keys_(keys) {
    sort();
    grow(1);
    take(Trie::kRoot);
    if (!keys.empty()) open_.push_back({Trie::kRoot, 0, order_.size(), 0});
    while (!open_.empty()) {
      const Range range = open_.back();
      open_.pop_back();
      place_children(range);
    }
  }

 private:
  struct Range {  // the keys [begin, end) share their first `depth` bytes, which lead to `node`
    Trie::Node node;
    std::size_t begin;
    std::size_t end;
    std::size_t depth;
  };

  void sort() {
    std::size_t bytes = 0;
    std::vector<SortKey> sorted;
    sorted.reserve(keys_.size());
    for (std::size_t i = 0; i < keys_.size(); ++i) {
      sorted.push_back({front_of(keys_[i].text), static_cast<std::uint32_t>(i)});
      bytes += keys_[i].text.size();
    }
    MASQUE_CHECK(bytes < std::size_t{1} << 31);
    std::sort(sorted.begin(), sorted.end(), [&](const SortKey& a, const SortKey& b) {
      if (a.front != b.front) return a.front < b.front;
      const int order = keys_[a.index].text.compare(keys_[b.index].text);
      return order != 0 ? order < 0 : a.index < b.index;
    });
    order_.reserve(sorted.size());
    for (const SortKey& key : sorted) order_.push_back(key.index);
    units_.reserve(bytes / 2 + 512);
  }

  std::string_view text(std::size_t place) const { return keys_[order_[place]].text; }

  void place_children(const Range& range) {
    std::size_t at = range.begin;
    for (; at < range.end && text(at).size() == range.depth; ++at) {
      units_[range.node].value = keys_[order_[at]].value;
    }
    if (at == range.end) return;
    children_.clear();
    while (at < range.end) {
      const char label = text(at)[range.depth];
      std::size_t end = at + 1;
      while (end < range.end && text(end)[range.depth] == label) ++end;
      children_.push_back({static_cast<unsigned char>(label), at, end, range.depth + 1});
      at = end;
    }
    const Trie::Node base = find_base();
    units_[range.node].base = base;
    for (Range& child : children_) {
      child.node += base;
      take(child.node);
      units_[child.node].parent = range.node;
      open_.push_back(child);
    }
  }

  /// A base at which the units of all children are free. A few tries, then after everything that
  /// is taken: the time stays linear for any keys. A free unit that was of no use is not tried
  /// again first.
  Trie::Node find_base() {
    const Trie::Node first = children_.front().node;
    Trie::Node at = head_;
    for (int tries = 0; tries < 16 && at < top_; ++tries, at = next_[at]) {
      if (at < first) continue;
      const Trie::Node base = at - first;
      grow(base + 256U);
      if (std::all_of(children_.begin(), children_.end(),
                      [&](const Range& child) { return free_[base + child.node]; })) {
        return base;
      }
    }
    if (head_ < top_ && children_.size() > 1) unlink(head_);
    const Trie::Node base = top_ > first ? top_ - first : 0;
    grow(base + 256U);
    return base;
  }

  /// Makes room for `size` units.
  void grow(std::size_t size) {
    while (units_.size() < size) {
      const auto unit = static_cast<Trie::Node>(units_.size());
      units_.emplace_back();
      free_.push_back(1);
      unlinked_.push_back(0);
      next_.push_back(Trie::kNone);
      previous_.push_back(tail_);
      (tail_ == Trie::kNone ? head_ : next_[tail_]) = unit;
      tail_ = unit;
    }
  }

  void take(Trie::Node unit) {
    free_[unit] = 0;
    top_ = std::max(top_, unit + 1);
    unlink(unit);
  }

  void unlink(Trie::Node unit) {
    if (unlinked_[unit]) return;
    unlinked_[unit] = 1;
    (previous_[unit] == Trie::kNone ? head_ : next_[previous_[unit]]) = next_[unit];
    (next_[unit] == Trie::kNone ? tail_ : previous_[next_[unit]]) = previous_[unit];
  }

  std::vector<Trie::Unit>& units_;
  std::span<const TrieKey> keys_;
  std::vector<std::uint32_t> order_;
  std::vector<Range> open_;
  std::vector<Range> children_;  // of one node; `node` is the label until it is placed
  std::vector<char> free_;
  std::vector<char> unlinked_;  // from the list of free units
  std::vector<Trie::Node> next_;
  std::vector<Trie::Node> previous_;
  Trie::Node head_ = Trie::kNone;
  Trie::Node tail_ = Trie::kNone;
  Trie::Node top_ = 0;  // one past the last unit that is taken
};

Trie::Trie(std::span<const TrieKey> keys) {
  const TrieBuilder build(units_, keys);
  // A leaf has base 0: its children would be among the first 256 units.
  Node last = 0;
  for (const Unit& unit : units_) last = std::max(last, unit.base);
  units_.resize(std::max<std::size_t>(units_.size(), std::size_t{last} + 256));
}

}  // namespace masque::text
