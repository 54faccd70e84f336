// Tries and pair tables against the map that they replace.
#include "text/model/trie.hpp"

#include <map>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "text/model/pair_table.hpp"

namespace masque::text {
namespace {

TEST_CASE("a trie has the values of its keys, and no others") {
  std::map<std::string, TokenId> keys;
  std::uint32_t state = 7;
  for (TokenId id = 0; id < 500; ++id) {
    std::string key;
    for (std::uint32_t i = 0; i <= static_cast<std::uint32_t>(id) % 5; ++i) {
      state = state * 1664525 + 1013904223;
      key += static_cast<char>("ab\0\xFFz"[(state >> 24) % 5]);
    }
    keys[key] = id;
  }
  std::vector<TrieKey> list;
  for (const auto& [text, value] : keys) list.push_back({text, value});
  const Trie trie(list);
  for (const auto& [text, value] : keys) {
    const Trie::Node node = trie.walk(Trie::kRoot, text);
    REQUIRE(node != Trie::kNone);
    CHECK(trie.value(node) == value);
    const Trie::Node longer = trie.child(node, 'q');
    CHECK(longer == Trie::kNone);
    // A prefix is a node, and has a value if it is a key.
    const std::string prefix = text.substr(0, text.size() - 1);
    const Trie::Node shorter = trie.walk(Trie::kRoot, prefix);
    REQUIRE(shorter != Trie::kNone);
    const auto found = keys.find(prefix);
    CHECK(trie.value(shorter) == (found == keys.end() ? -1 : found->second));
  }
}

TEST_CASE("an empty trie has no child, and of equal keys the last one counts") {
  const Trie none;
  for (int byte = 0; byte < 256; ++byte)
    CHECK(none.child(Trie::kRoot, static_cast<char>(byte)) == Trie::kNone);
  CHECK(none.value(Trie::kRoot) == -1);
  const std::vector<TrieKey> twice{{"a", 1}, {"a", 2}};
  const Trie trie(twice);
  CHECK(trie.value(trie.walk(Trie::kRoot, "a")) == 2);
}

TEST_CASE("a table of pairs has what was set last, and nothing else") {
  constexpr TokenId kIds = 20;
  PairTable table(kIds * kIds);
  for (TokenId left = 0; left < kIds; ++left) {
    for (TokenId right = 0; right < left; ++right) {
      table.set(left, right, {0, 0});
      table.set(left, right, {static_cast<std::uint32_t>(left), right});
    }
  }
  std::size_t count = 0;
  table.each([&](const Merge&) { ++count; });
  CHECK(count == kIds * (kIds - 1) / 2);
  for (TokenId left = 0; left < kIds; ++left) {
    for (TokenId right = 0; right < kIds; ++right) {
      const Merge found = table.find(left, right);
      CHECK(found.rank == (right < left ? static_cast<std::uint32_t>(left) : Merge().rank));
      CHECK(found.id == (right < left ? right : -1));
    }
  }
}

}  // namespace
}  // namespace masque::text
