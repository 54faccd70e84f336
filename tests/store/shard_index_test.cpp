// What an index may say; what it may not is among the golden bad files.
#include "store/shard_index.hpp"

#include <doctest/doctest.h>

namespace masque::store {
namespace {

ShardIndex parse(const std::string& text) { return value_or_throw(parse_shard_index(text)); }

TEST_CASE("an index keeps its order, its text and its distinct shards sorted") {
  const std::string text =
      R"({"metadata":{"total_size":"12","x":[1]},"weight_map":{"z":"b.st","a":"a.st","m":"b.st"}} )";
  const ShardIndex index = parse(text);
  std::string all;
  for (const ShardEntry& entry : index.entries) {
    all += entry.tensor + "=" + entry.shard + " ";
    CHECK(text.substr(entry.offset + 1, entry.shard.size()) == entry.shard);
  }
  CHECK(all == "z=b.st a=a.st m=b.st ");
  CHECK(index.shards == std::vector<std::string>{"a.st", "b.st"});
  CHECK(index.text == text);
}

TEST_CASE("names that only look dangerous are plain names") {
  for (const std::string& name :
       {std::string("..a"), std::string("..."), std::string("a.."), std::string("~"),
        std::string("-rf"), std::string("a b"), std::string("C:x"), std::string("%2e%2e"),
        std::string("größe"), std::string(255, 'n')}) {
    CAPTURE(name);
    CHECK(parse("{\"weight_map\":{\"t\":\"" + name + "\"}}").shards[0] == name);
  }
}

TEST_CASE("an index is recognised by its first byte and its map") {
  CHECK(looks_like_index(R"({"weight_map":{}})"));
  CHECK(looks_like_index(" \n\t\r{\"metadata\":1,\"weight_map\":{}}"));
  CHECK_FALSE(looks_like_index(R"({"weights":{}})"));
  CHECK_FALSE(looks_like_index(R"(["weight_map"])"));
  CHECK_FALSE(looks_like_index(R"(x{"weight_map":{}})"));
  CHECK_FALSE(looks_like_index(""));
  CHECK_FALSE(looks_like_index("   "));
}

}  // namespace
}  // namespace masque::store
