// Sizes as people write them, and how tensors are dealt out to shards.
#include "store/sharding.hpp"

#include <algorithm>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "base/random/random.hpp"
#include "store/safetensors/safetensors.hpp"
#include "store/shard_index.hpp"
#include "support/message.hpp"
#include "support/naive_json.hpp"

namespace masque::store {
namespace {

using test::message_of;
using test::naive_json;
using test::NaiveJson;

using Names = std::vector<std::string>;

TEST_CASE("sizes are read with their units") {
  struct Size {
    const char* text;
    std::uint64_t bytes;
  };
  for (const Size& size : {Size{"1", 1},
                           {"123", 123},
                           {"7B", 7},
                           {"1KB", 1000},
                           {"1MB", 1000000},
                           {"1GB", 1000000000},
                           {"1TB", 1000000000000},
                           {"1KiB", 1024},
                           {"1MiB", 1048576},
                           {"1GiB", 1073741824},
                           {"1TiB", 1099511627776},
                           {"500MB", 500000000},
                           {"5GB", 5000000000},
                           {"0.5KB", 500},
                           {"1.5KiB", 1536},
                           {"2.25GB", 2250000000},
                           {"0.001KB", 1},
                           {"007MB", 7000000},
                           {"9007199254740992", 9007199254740992},
                           {"8000000TB", 8000000000000000000}}) {
    CAPTURE(size.text);
    CHECK(parse_byte_size(size.text) == size.bytes);
  }
}

TEST_CASE("what is no size is a wrong command line") {
  for (const char* text : {"",
                           " ",
                           "B",
                           "MB",
                           "0",
                           "0GB",
                           "0.4",
                           "0.0001KB",
                           "-1",
                           "-5MB",
                           "+5MB",
                           "5 MB",
                           " 5MB",
                           "5MB ",
                           "5mb",
                           "5Mb",
                           "5gb",
                           "5M",
                           "5G",
                           "5kB",
                           "5EB",
                           "5MBB",
                           "5MB5",
                           "5,5MB",
                           "0x10",
                           "nan",
                           "inf",
                           "infinity",
                           "-inf",
                           "infGB",
                           "1e400",
                           "9223372036854775808",
                           "18446744073709551616",
                           "10000000TB",
                           "five"}) {
    CAPTURE(text);
    CHECK(
        message_of<UsageError>([&] { parse_byte_size(text); }) ==
        fmt::format("shard_size: '{}' is not a size, expected one like 500MB, 5GB or 1GiB", text));
  }
  CHECK(message_of<UsageError>([&] { parse_byte_size("\x1b[2J"); }) ==
        "shard_size: '\\x1b[2J' is not a size, expected one like 500MB, 5GB or 1GiB");
}

/// Tensors of U8 with these numbers of bytes, called "0", "1", …
OutputWeights weights_of(const std::vector<std::uint64_t>& sizes) {
  OutputWeights weights;
  weights.name = "somewhere.safetensors";
  weights.metadata = {{"format", "pt"}, {"by", "test"}};
  weights.alignment = 64;
  weights.mode = 0640;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    weights.tensors.push_back(
        {{.name = fmt::format("{}", i), .dtype = DType::kU8, .shape = {sizes[i]}}, Literal{}});
  }
  return weights;
}

/// "0 1|2|3 4": the tensors of every shard.
std::string dealt(const std::vector<OutputWeights>& shards) {
  std::string text;
  for (std::size_t i = 0; i < shards.size(); ++i) {
    for (std::size_t j = 0; j < shards[i].tensors.size(); ++j) {
      text += (j > 0 ? " " : i > 0 ? "|" : "") + shards[i].tensors[j].info.name;
    }
  }
  return text;
}

std::string dealt(const std::vector<std::uint64_t>& sizes,
                  std::optional<std::uint64_t> shard_bytes) {
  return dealt(split_into_shards(weights_of(sizes), shard_bytes, TensorOrder::kAsGiven));
}

TEST_CASE("a shard takes tensors while they fit") {
  CHECK(dealt({3, 3, 3}, std::nullopt) == "0 1 2");
  CHECK(dealt({3, 3, 3}, 9) == "0 1 2");
  CHECK(dealt({3, 3, 3}, 8) == "0 1|2");
  CHECK(dealt({3, 3, 3}, 6) == "0 1|2");
  CHECK(dealt({3, 3, 3}, 5) == "0|1|2");
  CHECK(dealt({3, 3, 3}, 1) == "0|1|2");
  // In order: a later one that would still fit does not overtake.
  CHECK(dealt({3, 5, 1, 1}, 4) == "0|1|2 3");
  CHECK(dealt({1, 9, 1}, 4) == "0|1|2");
  CHECK(dealt({9, 9}, 4) == "0|1");
  CHECK(dealt({}, 4) == "");
}

TEST_CASE("tensors without bytes need no room") {
  CHECK(dealt({0, 0, 0}, 1) == "0 1 2");
  CHECK(dealt({4, 0, 4, 0}, 4) == "0 1|2 3");
  CHECK(dealt({0, 9, 0, 1}, 4) == "0 1 2|3");
}

TEST_CASE("any sizes are dealt out in order, greedily and within the limit") {
  const RandomStream stream(5, "sharding");
  for (std::uint64_t round = 0; round < 300; ++round) {
    const PhiloxBlock draw = stream.block(round);
    const std::uint64_t limit = 1 + draw[0] % 50;
    std::vector<std::uint64_t> sizes(draw[1] % 40);
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      sizes[i] = RandomStream(round, "size").block(i)[0] % (1 + draw[2] % 70);
    }
    const auto shards = split_into_shards(weights_of(sizes), limit, TensorOrder::kAsGiven);
    CAPTURE(round);
    std::size_t next = 0;
    for (std::size_t s = 0; s < shards.size(); ++s) {
      std::uint64_t used = 0;
      std::size_t with_bytes = 0;
      for (const OutputTensor& tensor : shards[s].tensors) {
        CHECK(tensor.info.name == fmt::format("{}", next));
        used += sizes[next];
        with_bytes += sizes[next++] > 0;
      }
      CHECK((used <= limit || with_bytes == 1));
      if (s + 1 == shards.size()) break;
      REQUIRE(next < sizes.size());
      CHECK(used + sizes[next] > limit);
    }
    CHECK(next == sizes.size());
  }
}

TEST_CASE("shards are named as transformers names them") {
  const auto names = [](std::size_t count) {
    Names out;
    for (const auto& shard : split_into_shards(weights_of(std::vector<std::uint64_t>(count, 2)), 2,
                                               TensorOrder::kAsGiven)) {
      out.push_back(shard.name);
    }
    return out;
  };
  CHECK(names(0) == Names{"model.safetensors"});
  CHECK(names(1) == Names{"model.safetensors"});
  CHECK(names(2) == Names{"model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"});
  CHECK(names(12).front() == "model-00001-of-00012.safetensors");
  CHECK(names(12).back() == "model-00012-of-00012.safetensors");
  const auto many = names(100001);
  CHECK(many.back() == "model-100001-of-100001.safetensors");
  CHECK(many.front() == "model-00001-of-100001.safetensors");
}

TEST_CASE("every shard has the metadata, the alignment and the mode of the whole") {
  for (const std::vector<std::uint64_t>& sizes : {std::vector<std::uint64_t>{}, {1, 2, 3}}) {
    for (const auto& shard : split_into_shards(weights_of(sizes), 1, TensorOrder::kAsGiven)) {
      CHECK(shard.metadata == Metadata{{"format", "pt"}, {"by", "test"}});
      CHECK(shard.alignment == 64);
      CHECK(shard.mode == 0640);
    }
  }
}

TEST_CASE("in the reference order every shard is sorted, whatever is in it") {
  OutputWeights weights;
  for (const auto& [name, dtype] : {std::pair{"b", DType::kF16},
                                    {"a", DType::kU8},
                                    {"c", DType::kF32},
                                    {"d", DType::kI64},
                                    {"e", DType::kF32},
                                    {"B", DType::kF32}}) {
    weights.tensors.push_back({{.name = name, .dtype = dtype, .shape = {1}}, Literal{}});
  }
  CHECK(dealt(split_into_shards(weights, 8, TensorOrder::kReference)) == "c b a|d|B e");
  CHECK(dealt(split_into_shards(weights, 8, TensorOrder::kAsGiven)) == "b a c|d|e B");
}

TEST_CASE("the index names every tensor, sorted, with the sizes of the whole") {
  OutputWeights weights;
  const Names names = {"z", "a", "quote\"d", "back\\slash", "line\nfeed", "é", "埋め込み"};
  for (const std::string& name : names) {
    weights.tensors.push_back({{.name = name, .dtype = DType::kF32, .shape = {2, 3}}, Literal{}});
  }
  weights.tensors.push_back({{.name = "half", .dtype = DType::kF16, .shape = {}}, Literal{}});
  weights.tensors.push_back({{.name = "none", .dtype = DType::kF16, .shape = {0, 4}}, Literal{}});
  const auto shards = split_into_shards(weights, 50, TensorOrder::kReference);
  REQUIRE(shards.size() == 4);
  const OutputExtra extra = index_extra(shards);
  CHECK(extra.name == "model.safetensors.index.json");
  const std::string text = std::get<Literal>(extra.source).text;
  CHECK(extra.size == text.size());

  const auto index = std::get<ShardIndex>(parse_shard_index(text));
  CHECK(index.entries.size() == weights.tensors.size());
  CHECK(std::is_sorted(index.entries.begin(), index.entries.end(),
                       [](const auto& a, const auto& b) { return a.tensor < b.tensor; }));
  std::size_t found = 0;
  for (const OutputWeights& shard : shards) {
    for (const OutputTensor& tensor : shard.tensors) {
      found += static_cast<std::size_t>(
          std::count_if(index.entries.begin(), index.entries.end(), [&](const ShardEntry& entry) {
            return entry.tensor == tensor.info.name && entry.shard == shard.name;
          }));
    }
  }
  CHECK(found == weights.tensors.size());
  CHECK(index.shards.size() == shards.size());

  const auto json = naive_json(text, 3);
  REQUIRE(json.has_value());
  const NaiveJson* metadata = json->find("metadata");
  REQUIRE(metadata != nullptr);
  CHECK(metadata->find("total_size")->text == "170");       // 7 · 24 + 2
  CHECK(metadata->find("total_parameters")->text == "43");  // 7 · 6 + 1
  CHECK(text.ends_with("}\n"));
}

TEST_CASE("an index reads like one of transformers") {
  OutputWeights weights;
  weights.tensors.push_back({{.name = "b", .dtype = DType::kF32, .shape = {2}}, Literal{}});
  weights.tensors.push_back({{.name = "a", .dtype = DType::kF32, .shape = {3}}, Literal{}});
  const auto shards = split_into_shards(weights, 8, TensorOrder::kReference);
  CHECK(std::get<Literal>(index_extra(shards).source).text ==
        "{\n"
        "  \"metadata\": {\n"
        "    \"total_parameters\": 5,\n"
        "    \"total_size\": 20\n"
        "  },\n"
        "  \"weight_map\": {\n"
        "    \"a\": \"model-00002-of-00002.safetensors\",\n"
        "    \"b\": \"model-00001-of-00002.safetensors\"\n"
        "  }\n"
        "}\n");
}

}  // namespace
}  // namespace masque::store
