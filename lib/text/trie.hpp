// A double-array trie over byte strings.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string_view>
#include <vector>

#include "base/types.hpp"

namespace masque::text {

struct TrieKey {
  std::string_view text;
  TokenId value = 0;  ///< ≥ 0
};

/// Aoe 1989: the child of a node by a byte is one addition and one comparison away. Immutable.
class Trie {
 public:
  using Node = std::uint32_t;
  static constexpr Node kRoot = 0;
  static constexpr Node kNone = std::numeric_limits<Node>::max();

  Trie() : Trie(std::span<const TrieKey>{}) {}
  /// Of equal keys the last one counts. Cost O(bytes of the keys) besides the sort.
  explicit Trie(std::span<const TrieKey> keys);

  /// The child by byte `c`, or kNone.
  Node child(Node node, char c) const {
    const Node next = units_[node].base + static_cast<unsigned char>(c);
    return units_[next].parent == node ? next : kNone;
  }
  /// The value of the key that ends here, or −1.
  TokenId value(Node node) const { return units_[node].value; }
  /// The node that `text` leads to, or kNone.
  Node walk(Node node, std::string_view text) const {
    for (std::size_t i = 0; i < text.size() && node != kNone; ++i) node = child(node, text[i]);
    return node;
  }

 private:
  friend class TrieBuilder;
  struct Unit {
    Node base = 0;  // always at least 256 below the end
    Node parent = kNone;
    TokenId value = -1;
  };
  std::vector<Unit> units_;
};

}  // namespace masque::text
