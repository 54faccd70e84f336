#include "store/shard_index.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "base/escape.hpp"
#include "base/json/json.hpp"

namespace masque::store {

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
  ShardIndex index;
  std::optional<Violation> broken;
  const auto error = scan_json_leaves(text, [&](const std::vector<JsonStep>& path, JsonKind kind,
                                                const std::string& value, std::size_t begin) {
    if (path.empty() || path[0].key != "weight_map") return true;
    if (path.size() != 2 || !path[1].in_object || kind != JsonKind::kString) {
      broken = Violation{"index-weight-map", "found another value, expected tensors and file names",
                         path.size() > 1 ? path[1].key : "", begin};
      return false;
    }
    if (!is_component(value)) {
      broken = Violation{"index-shard-name",
                         fmt::format("shard '{}' is not a plain file name", escape(value)),
                         path[1].key, begin};
      return false;
    }
    index.entries.push_back({path[1].key, value, begin});
    return true;
  });
  if (broken) return *std::move(broken);
  if (error) {
    return Violation{error->duplicate_key ? "index-duplicate-key" : "index-not-json",
                     error->message, "", error->offset};
  }
  if (index.entries.empty()) {
    return Violation{"index-weight-map", "no weight_map with entries, expected one", "", 0};
  }
  for (const ShardEntry& entry : index.entries) {
    if (index.shards.empty() || index.shards.back() != entry.shard)
      index.shards.push_back(entry.shard);
  }
  std::sort(index.shards.begin(), index.shards.end());
  index.shards.erase(std::unique(index.shards.begin(), index.shards.end()), index.shards.end());
  index.text = std::move(text);
  return index;
}

}  // namespace masque::store
