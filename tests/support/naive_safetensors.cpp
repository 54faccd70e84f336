#include "support/naive_safetensors.hpp"

#include <algorithm>
#include <cstring>
#include <map>

#include "support/naive_json.hpp"

namespace masque::test {

namespace {

/// value·factor + more, or nothing if that needs more than 64 bits; by division.
std::optional<std::uint64_t> grown(std::uint64_t value, std::uint64_t factor, std::uint64_t more) {
  constexpr std::uint64_t kMost = ~std::uint64_t{0};
  if (factor != 0 && value > (kMost - more) / factor) return std::nullopt;
  return value * factor + more;
}

const std::map<std::string, unsigned> kBits = {
    {"BOOL", 8}, {"F4", 4},          {"F6_E2M3", 6}, {"F6_E3M2", 6}, {"U8", 8},
    {"I8", 8},   {"F8_E5M2", 8},     {"F8_E4M3", 8}, {"F8_E8M0", 8}, {"F8_E4M3FNUZ", 8},
    {"I16", 16}, {"F8_E5M2FNUZ", 8}, {"U16", 16},    {"F16", 16},    {"BF16", 16},
    {"I32", 32}, {"U32", 32},        {"F32", 32},    {"C64", 64},    {"F64", 64},
    {"I64", 64}, {"U64", 64}};

/// An array of whole numbers below 2^64.
std::optional<std::vector<std::uint64_t>> numbers(const NaiveJson* array) {
  if (array == nullptr || array->kind != '[') return std::nullopt;
  std::vector<std::uint64_t> out;
  for (const NaiveJson& item : array->items) {
    if (item.kind != '0') return std::nullopt;
    std::optional<std::uint64_t> value = 0;
    for (const char c : item.text) {
      if (c < '0' || c > '9') return std::nullopt;
      value = grown(*value, 10, static_cast<unsigned>(c - '0'));
      if (!value) return std::nullopt;
    }
    out.push_back(*value);
  }
  return out;
}

std::optional<NaiveTensor> tensor_of(const std::string& name, const NaiveJson& entry) {
  const NaiveJson* dtype = entry.find("dtype");
  const auto shape = numbers(entry.find("shape"));
  const auto offsets = numbers(entry.find("data_offsets"));
  if (entry.kind != '{' || dtype == nullptr || dtype->kind != '"' || !shape || !offsets) return {};
  if (kBits.count(dtype->text) == 0 || offsets->size() != 2) return {};
  std::optional<std::uint64_t> bits = 1;
  for (const std::uint64_t dimension : *shape) {
    bits = grown(*bits, dimension, 0);
    if (!bits) return {};
  }
  bits = grown(*bits, kBits.at(dtype->text), 0);
  if (!bits || *bits % 8 != 0) return {};
  if ((*offsets)[0] > (*offsets)[1] || (*offsets)[1] - (*offsets)[0] != *bits / 8) return {};
  return NaiveTensor{name, dtype->text, *shape, (*offsets)[0], (*offsets)[1]};
}

bool good_metadata(const NaiveJson& metadata) {
  return metadata.kind == 'n' ||
         (metadata.kind == '{' &&
          std::all_of(metadata.members.begin(), metadata.members.end(),
                      [](const auto& member) { return member.value.kind == '"'; }));
}

}  // namespace

std::optional<std::vector<NaiveTensor>> naive_safetensors(std::string_view file) {
  std::uint64_t length = 0;
  if (file.size() < 8) return {};
  std::memcpy(&length, file.data(), 8);
  if (length > 100'000'000 || length > file.size() - 8) return {};
  const auto root = naive_json(file.substr(8, length), 4);
  if (!root || root->kind != '{') return {};
  std::vector<NaiveTensor> tensors;
  for (const auto& [name, entry] : root->members) {
    if (name == "__metadata__") {
      if (!good_metadata(entry)) return {};
      continue;
    }
    auto tensor = tensor_of(name, entry);
    if (!tensor) return {};
    tensors.push_back(*std::move(tensor));
  }
  std::stable_sort(tensors.begin(), tensors.end(), [](const auto& a, const auto& b) {
    return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
  });
  std::uint64_t reached = 0;
  for (NaiveTensor& tensor : tensors) {
    if (tensor.begin != reached) return {};
    reached = tensor.end;
    tensor.begin += 8 + length;
    tensor.end += 8 + length;
  }
  if (reached != file.size() - 8 - length) return {};
  return tensors;
}

}  // namespace masque::test
