#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/json/json.hpp"
#include "base/little_endian.hpp"
#include "fuzz/mutators/mutator.hpp"
#include "tensor/dtype.hpp"

namespace masque::test {

namespace {

constexpr std::uint64_t kMostData = 1 << 12;

/// The bytes that an entry needs; nothing if it is none.
std::optional<std::uint64_t> needed(const JsonValue& entry) {
  const JsonValue* shape = entry.find("shape");
  const auto dtype = find_dtype(entry.text_of("dtype"));
  if (shape == nullptr || !dtype || entry.find("data_offsets") == nullptr) return std::nullopt;
  std::uint64_t elements = 1;
  for (const JsonValue& size : shape->items) {
    const std::uint64_t n = size.integer().value_or(1);
    if (n > kMostData) return std::nullopt;
    elements = std::min(elements * n, kMostData);
  }
  return elements * dtype_bits(*dtype) / 8;
}

/// The header with places that follow from types and shapes, and the end of the last one.
std::pair<std::string, std::uint64_t> placed(const std::string& header) {
  const auto parsed = read_json(header);
  const auto* root = std::get_if<JsonValue>(&parsed);
  std::string out;
  std::size_t copied = 0;
  std::uint64_t end = 0;
  if (root == nullptr) return {header, 0};
  for (const JsonMember& entry : root->members) {
    const auto bytes = needed(entry.value);
    if (!bytes) continue;
    const JsonValue& offsets = *entry.value.find("data_offsets");
    out += header.substr(copied, offsets.begin - copied);
    out += fmt::format("[{},{}]", end, end + *bytes);
    copied = offsets.end;
    end += *bytes;
  }
  return {out + header.substr(copied), end};
}

}  // namespace

std::string mutate_safetensors(std::string_view file, Choices& choices) {
  if (file.size() < 8) return {};
  const auto length = load_number<std::uint64_t>(file.data());
  if (length > file.size() - 8) return {};
  std::string header = mutate_json(file.substr(8, length), choices);
  if (header.empty()) return {};
  std::string data(file.substr(8 + length));
  if (!choices.one_in(4)) {
    const auto [text, end] = placed(header);
    header = text;
    data.resize(std::min(end, kMostData));
  }
  if (choices.one_in(4)) data = mutate_bytes(data);
  std::string out;
  append_number(out, static_cast<std::uint64_t>(header.size()));
  return out + header + data;
}

std::string mutate_config_and_weights(std::string_view input, Choices& choices) {
  const std::size_t end = input.find('\0');
  if (end == std::string_view::npos) return {};
  std::string config(input.substr(0, end));
  std::string weights(input.substr(end + 1));
  std::string& part = choices.one_in(2) ? config : weights;
  part = &part == &config ? mutate_json(config, choices) : mutate_safetensors(weights, choices);
  return part.empty() ? part : config + '\0' + weights;
}

}  // namespace masque::test
