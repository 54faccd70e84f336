// A double-array trie over byte strings.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string_view>
#include <vector>

#include "base/types.hpp"

namespace masque::text {

/// A key and its value. The text is needed only while a trie is made.
struct TrieKey {
  std::string_view text;  ///< any bytes
  TokenId value = 0;      ///< ≥ 0
};

/// A map from byte strings to ids. Aoe 1989: the child of a node by a byte is one addition and one
/// comparison away. Immutable.
class Trie {
 public:
  /// A place in the trie: a prefix of some key.
  using Node = std::uint32_t;
  /// The node of the empty prefix.
  static constexpr Node kRoot = 0;
  /// No node.
  static constexpr Node kNone = std::numeric_limits<Node>::max();

  Trie() : Trie(std::span<const TrieKey>{}) {}
  /// A trie of `keys`, of less than 2 GiB. Of equal keys the last one counts. Cost O(bytes of the
  /// keys) besides the sort.
  explicit Trie(std::span<const TrieKey> keys);

  /// The child of `node`, which is not kNone, by byte `c`, or kNone.
  Node child(Node node, char c) const {
    const Node next = units_[node].base + static_cast<unsigned char>(c);
    return units_[next].parent == node ? next : kNone;
  }
  /// The value of the key that ends at `node`, which is not kNone, or −1.
  TokenId value(Node node) const { return units_[node].value; }
  /// The node that `text` leads to from `node`, or kNone.
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
