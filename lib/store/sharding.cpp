#include "store/sharding.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/json/json_writer.hpp"
#include "base/string/parse_number.hpp"
#include "store/safetensors/safetensors.hpp"

namespace masque::store {

std::uint64_t parse_byte_size(std::string_view text, std::string_view option) {
  constexpr std::array<std::pair<std::string_view, double>, 8> kUnits{{
      {"KB", 1e3},
      {"MB", 1e6},
      {"GB", 1e9},
      {"TB", 1e12},
      {"KiB", 0x1p10},
      {"MiB", 0x1p20},
      {"GiB", 0x1p30},
      {"TiB", 0x1p40},
  }};
  std::string_view unit = text;
  const double value = take_number<double>(unit).value_or(0);
  double factor = unit.empty() || unit == "B" ? 1 : 0;
  for (const auto& [name, size] : kUnits) {
    if (name == unit) factor = size;
  }
  const double bytes = value * factor;
  if (!(bytes >= 1 && bytes < 0x1p63)) {
    throw UsageError(fmt::format("{}: '{}' is not a size, expected one like 500MB, 5GB or 1GiB",
                                 field(option), escape(text)));
  }
  return static_cast<std::uint64_t>(bytes);
}

std::vector<OutputWeights> split_into_shards(OutputWeights weights,
                                             std::optional<std::uint64_t> shard_bytes,
                                             TensorOrder order) {
  std::vector<OutputWeights> shards;
  std::uint64_t used = 0;
  for (OutputTensor& tensor : weights.tensors) {
    const std::uint64_t size = byte_count(tensor.info.dtype, tensor.info.shape).value();
    if (shards.empty() ||
        (shard_bytes && used > 0 && size > *shard_bytes - std::min(used, *shard_bytes))) {
      OutputWeights& shard = shards.emplace_back();
      shard.writer = weights.writer;
      shard.metadata = weights.metadata;
      shard.alignment = weights.alignment;
      shard.mode = weights.mode;
      used = 0;
    }
    shards.back().tensors.push_back(std::move(tensor));
    used += size;
  }
  const WeightsWriter& writer = weights_writer(weights.writer);
  if (shards.empty()) {
    shards.push_back(std::move(weights));
  } else {  // formats with these have no shards
    shards.front().opaque = std::move(weights.opaque);
    shards.front().typed = std::move(weights.typed);
  }
  for (std::size_t i = 0; i < shards.size(); ++i) {
    shards[i].name = shards.size() == 1
                         ? std::string(writer.single)
                         : fmt::format(fmt::runtime(writer.shard), i + 1, shards.size());
    if (order == TensorOrder::kAsGiven) continue;
    std::sort(shards[i].tensors.begin(), shards[i].tensors.end(),
              [](const OutputTensor& a, const OutputTensor& b) {
                return safetensors_before(a.info, b.info);
              });
  }
  return shards;
}

std::string index_name(const WeightsWriter& writer) {
  return fmt::format("{}.index.json", writer.single);
}

OutputExtra index_extra(const std::vector<OutputWeights>& shards) {
  std::map<std::string, std::string> map;
  std::uint64_t bytes = 0;
  std::uint64_t parameters = 0;
  for (const OutputWeights& shard : shards) {
    for (const OutputTensor& tensor : shard.tensors) {
      map[tensor.info.name] = shard.name;
      bytes += byte_count(tensor.info.dtype, tensor.info.shape).value();
      parameters += element_count(tensor.info.shape).value();
    }
  }
  std::string text;
  JsonWriter json(text, JsonLayout::kLines);
  json.begin_object().key("metadata").begin_object();
  json.member("total_parameters", parameters).member("total_size", bytes).end_object();
  json.key("weight_map").begin_object();
  for (const auto& [tensor, shard] : map) json.member(tensor, shard);
  json.end_object().end_object();
  text += '\n';
  const std::uint64_t size = text.size();
  return {index_name(weights_writer(shards.at(0).writer)), Literal{std::move(text)}, size, 0644};
}

}  // namespace masque::store
