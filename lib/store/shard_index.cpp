#include "store/shard_index.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "base/escape.hpp"
#include "base/json.hpp"

namespace masque {

namespace {

bool is_component(std::string_view name) {
  return !name.empty() && name.size() <= 255 && name != "." && name != ".." &&
         name.find_first_of(std::string_view("/\\\0", 3)) == std::string_view::npos;
}

}  // namespace

bool looks_like_index(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  return first != std::string_view::npos && text[first] == '{' &&
         text.find("\"weight_map\"") != std::string_view::npos;
}

Checked<ShardIndex> parse_shard_index(std::string text) {
  auto document = read_json(text);
  if (const auto* error = std::get_if<JsonError>(&document)) {
    return Violation{error->duplicate_key ? "index-duplicate-key" : "index-not-json",
                     error->message, "", error->offset};
  }
  const auto& root = std::get<JsonValue>(document);
  const JsonValue* map = root.find("weight_map");
  if (map == nullptr || !map->is(JsonKind::kObject) || map->members.empty()) {
    return Violation{"index-weight-map", "no weight_map with entries, expected one", "",
                     map == nullptr ? 0 : map->begin};
  }
  ShardIndex index;
  for (const JsonMember& member : map->members) {
    if (!member.value.is(JsonKind::kString)) {
      return Violation{"index-weight-map", "the shard is no string, expected a file name",
                       member.name, member.value.begin};
    }
    const std::string& shard = member.value.text;
    if (!is_component(shard)) {
      return Violation{"index-shard-name",
                       fmt::format("shard '{}' is no plain file name", escape(shard)), member.name,
                       member.value.begin};
    }
    index.weight_map.emplace_back(member.name, shard);
    index.shards.push_back(shard);
  }
  std::sort(index.shards.begin(), index.shards.end());
  index.shards.erase(std::unique(index.shards.begin(), index.shards.end()), index.shards.end());
  index.text = std::move(text);
  return index;
}

}  // namespace masque
