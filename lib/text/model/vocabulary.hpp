// Tokens and ids: all text in one string, one flat hash table.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "text/model/model.hpp"
#include "text/model/trie.hpp"

namespace masque::text {

/// A set of tokens with ids. Immutable and thread-safe; 12 to 28 bytes besides a token's text. Ids
/// may have gaps of any size.
class Vocabulary {
 public:
  Vocabulary() = default;
  /// Of `entries`, in any order: tokens differ, ids are unique and ≥ 0, text is less than 4 GiB.
  /// What reads files has to see to it: a breach is a std::logic_error.
  explicit Vocabulary(std::vector<VocabEntry> entries);

  /// Largest id + 1.
  std::size_t size() const;
  /// Number of tokens.
  std::size_t count() const { return begin_.size() - 1; }
  /// The id of `token`; nothing if it has none.
  std::optional<TokenId> find(std::string_view token) const;
  /// The token of `id`; empty for a gap or an id out of range. Valid as long as this object stays
  /// where it is.
  std::string_view token(TokenId id) const;
  /// All tokens by ascending id; the text lives as long as this object stays where it is.
  std::vector<TrieKey> keys() const;

 private:
  struct Slot {
    std::uint32_t tag = 0;    // high bits of the hash
    std::uint32_t entry = 0;  // + 1; 0: free
  };

  std::string_view text_of(std::size_t entry) const {
    return std::string_view(text_).substr(begin_[entry], begin_[entry + 1] - begin_[entry]);
  }
  bool insert(std::uint32_t entry);

  std::string text_;
  std::vector<std::uint32_t> begin_ = {0};  // of each entry, and the end
  std::vector<TokenId> ids_;                // ascending; empty if entry i has id i
  std::vector<Slot> slots_;                 // a power of two, at most half full
};

/// Of each of `tokens`, whether no later one is equal.
std::vector<bool> last_of_kind(std::span<const std::string> tokens);

}  // namespace masque::text
