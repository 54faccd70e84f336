// Any bytes as an index of shards: what is accepted names only plain files and says what a naive
// reading says.
#include <algorithm>
#include <set>
#include <string>

#include "fuzz/fuzz.hpp"
#include "fuzz/mutators/mutator.hpp"
#include "store/shard_index.hpp"
#include "support/naive_json.hpp"

namespace masque {
namespace {

using test::NaiveJson;

bool plain(const std::string& name) {
  return !name.empty() && name != "." && name != ".." && name.size() < 256 &&
         std::none_of(name.begin(), name.end(),
                      [](char c) { return c == '/' || c == '\\' || c == '\0'; });
}

/// The map by the naive parser; nullptr if there is no good one.
const NaiveJson* naive_map(const std::optional<NaiveJson>& root) {
  if (!root) return nullptr;
  const NaiveJson* map = root->find("weight_map");
  if (map == nullptr || map->kind != '{' || map->members.empty()) return nullptr;
  for (const auto& [name, shard] : map->members) {
    if (shard.kind != '"' || !plain(shard.text)) return nullptr;
  }
  return map;
}

const char* wrong(std::string_view input) {
  const std::string text(input);
  const auto parsed = store::parse_shard_index(text);
  const auto root = test::naive_json(text, 64);
  const NaiveJson* map = naive_map(root);
  const auto* index = std::get_if<store::ShardIndex>(&parsed);
  if (index == nullptr) return map == nullptr ? nullptr : "refused, but not by the naive reading";
  if (map == nullptr) return "accepted, but not by the naive reading";
  if (!store::looks_like_index(text)) return "accepted, but not recognised";
  if (index->text != text) return "another text";
  if (index->entries.size() != map->members.size()) return "another number of tensors";
  std::set<std::string> shards;
  for (std::size_t i = 0; i < index->entries.size(); ++i) {
    const auto& [name, shard, offset] = index->entries[i];
    if (!plain(shard)) return "a shard that is no plain name";
    if (name != map->members[i].name || shard != map->members[i].value.text) return "another map";
    shards.insert(shard);
  }
  if (std::vector<std::string>(shards.begin(), shards.end()) != index->shards) return "shards";
  return nullptr;
}

}  // namespace
}  // namespace masque

MASQUE_FUZZ_TARGET(masque::wrong)
MASQUE_FUZZ_MUTATOR(masque::test::mutate_json)
