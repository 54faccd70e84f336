// A second, naive reading of GGUF files, and whether parse_gguf agrees with it.
#pragma once

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "store/gguf/gguf.hpp"
#include "store/gguf/gguf_metadata.hpp"
#include "store/weights_writer.hpp"
#include "support/naive_utf8.hpp"

namespace masque::test {

/// A tensor as the naive reading sees it.
struct NaiveGgufTensor {
  std::uint32_t type = 0;
  std::vector<std::uint64_t> shape;
  std::string bytes;
  bool operator==(const NaiveGgufTensor&) const = default;
};

/// Reads a whole file in memory; throws std::exception at anything that is wrong.
class NaiveGguf {
 public:
  explicit NaiveGguf(std::string_view file) : file_(file), rest_(file) {
    require(take(4) == "GGUF");
    const auto version = number<std::uint32_t>();
    require(version == 2 || version == 3);
    const auto count = number<std::uint64_t>();
    const auto values = number<std::uint64_t>();
    for (std::uint64_t i = 0; i < values; ++i) {
      const std::string key = text();
      require(!key.empty() && key.size() < 65536);
      for (const char c : key) require(static_cast<unsigned char>(c) < 128);
      const std::string_view before = rest_;
      value(number<std::uint32_t>(), key, true);
      require(metadata.emplace(key, std::string(before.substr(0, before.size() - rest_.size())))
                  .second);
    }
    std::set<std::uint64_t> lengths;
    for (const char* key : {"tokens", "scores", "token_type"}) {
      const auto found = lengths_.find(std::string("tokenizer.ggml.") + key);
      if (found != lengths_.end()) lengths.insert(found->second);
    }
    require(lengths.size() < 2);
    read_tensors(count);
  }

  std::map<std::string, std::string> metadata;  ///< bytes of values, with their types
  std::map<std::string, NaiveGgufTensor> tensors;

 private:
  static void require(bool good) {
    if (!good) throw std::runtime_error("wrong");
  }

  std::string_view take(std::uint64_t count) {
    require(count <= rest_.size());
    const std::string_view taken = rest_.substr(0, count);
    rest_.remove_prefix(count);
    return taken;
  }

  template <class Number>
  Number number() {
    Number out{};
    std::memcpy(&out, take(sizeof(Number)).data(), sizeof(Number));
    return out;
  }

  std::string text() { return std::string(take(number<std::uint64_t>())); }

  void value(std::uint32_t type, const std::string& key, bool top) {
    constexpr std::array<int, 13> kSizes{1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
    require(type < 13);
    const bool wants_tokens = key == "tokenizer.ggml.tokens";
    const bool wants_scores = key == "tokenizer.ggml.scores";
    const bool wants_types = key == "tokenizer.ggml.token_type";
    if (top) {
      require((!wants_tokens && !wants_scores && !wants_types) || type == 9);
      require(key != "general.alignment" || type == 4);
    }
    if (type == 9) {
      require(top);
      const auto element = number<std::uint32_t>();
      const auto count = number<std::uint64_t>();
      require(element < 13 && element != 9);
      require(!wants_tokens || element == 8);
      require(!wants_scores || element == 6);
      require(!wants_types || element == 5);
      lengths_[key] = count;
      require(count <= rest_.size());
      for (std::uint64_t i = 0; i < count; ++i) value(element, key, false);
      return;
    }
    if (type == 8) {
      const std::string found = text();
      require(!top || naive_valid_utf8(found));
      return;
    }
    const std::string_view bytes = take(static_cast<std::uint64_t>(kSizes[type]));
    require(type != 7 || static_cast<unsigned char>(bytes[0]) < 2);
    if (top && key == "general.alignment") {
      std::uint32_t alignment = 0;
      std::memcpy(&alignment, bytes.data(), 4);
      alignment_ = 0;
      for (std::uint32_t power = 1; power <= 1 << 20; power *= 2)
        if (alignment == power) alignment_ = power;
      require(alignment_ != 0);
    }
  }

  void read_tensors(std::uint64_t count) {
    struct Entry {
      std::string name;
      NaiveGgufTensor tensor;
      std::uint64_t offset;
      std::uint64_t size;
    };
    std::vector<Entry> entries;
    for (std::uint64_t i = 0; i < count; ++i) {
      Entry entry;
      entry.name = text();
      require(entry.name.size() <= 65536 && naive_valid_utf8(entry.name));
      const auto rank = number<std::uint32_t>();
      require(rank <= 4);
      for (std::uint32_t d = 0; d < rank; ++d)
        entry.tensor.shape.insert(entry.tensor.shape.begin(), number<std::uint64_t>());
      entry.tensor.type = number<std::uint32_t>();
      entry.offset = number<std::uint64_t>();
      const store::GgmlType* type = store::find_ggml_type(entry.tensor.type);
      require(type != nullptr && entry.offset % alignment_ == 0);
      long double elements = 1;  // exact below 2^64
      for (const std::uint64_t size : entry.tensor.shape) {
        require(size < std::uint64_t{1} << 63);
        elements *= static_cast<long double>(size);
        require(elements < 0x1p64L);
      }
      require(elements < 0x1p63L);
      const std::uint64_t row = rank == 0 ? 1 : entry.tensor.shape.back();
      require(row % type->block_elements == 0);
      const long double size = elements / static_cast<long double>(type->block_elements) *
                               static_cast<long double>(type->block_bytes);
      require(size <= static_cast<long double>(file_.size()));
      entry.size = static_cast<std::uint64_t>(size);
      entries.push_back(entry);
    }
    std::uint64_t data = file_.size() - rest_.size();
    while (data % alignment_ != 0) ++data;
    std::vector<bool> used(file_.size() + 1);
    for (Entry& entry : entries) {
      require(entry.offset <= file_.size() && data + entry.offset + entry.size <= file_.size());
      for (std::uint64_t i = 0; i < entry.size; ++i) {
        require(!used[data + entry.offset + i]);
        used[data + entry.offset + i] = true;
      }
      entry.tensor.bytes = file_.substr(data + entry.offset, entry.size);
      require(tensors.emplace(entry.name, entry.tensor).second);
    }
    // Empty ones must not stand inside of others.
    for (const Entry& entry : entries)
      for (const Entry& other : entries)
        require(entry.size != 0 || entry.offset <= other.offset ||
                entry.offset >= other.offset + other.size);
  }

  std::string_view file_;
  std::string_view rest_;
  std::uint64_t alignment_ = 32;
  std::map<std::string, std::uint64_t> lengths_;
};

/// The parser on bytes in memory.
inline store::Checked<store::FileContent> parse_gguf_text(std::string_view file,
                                                          const store::GgufLimits& limits = {}) {
  const store::GgufRead read = [&](std::uint64_t offset, MutableBytes out) {
    if (offset > file.size() || out.size() > file.size() - offset)
      throw std::logic_error("a read beyond the file");
    std::memcpy(out.data(), file.data() + offset, out.size());
  };
  return store::parse_gguf(read, file.size(), limits);
}

/// The file written from what was read.
inline std::string rewritten_gguf(std::string_view file, const store::FileContent& content) {
  store::OutputWeights weights;
  weights.writer = "gguf";
  weights.metadata = content.metadata;
  weights.typed = content.typed;
  const auto literal = [&](const auto& tensor) {
    return store::Literal{std::string(file.substr(tensor.begin, tensor.bytes()))};
  };
  for (const store::TensorInfo& tensor : content.tensors)
    weights.tensors.push_back({tensor, literal(tensor)});
  for (const store::OpaqueTensor& tensor : content.opaque)
    weights.opaque.push_back({tensor, literal(tensor), {}});
  std::string out;
  for (const store::PlannedPart& part : store::weights_writer("gguf").plan(weights, "out").parts)
    out += std::get<store::Literal>(part.source).text;
  return out;
}

/// What is wrong with the verdict on a file; empty: nothing. Files with names that ggml cannot hold
/// are not written again.
inline std::string wrong_gguf(std::string_view file) {
  const auto parsed = parse_gguf_text(file);
  const auto* content = std::get_if<store::FileContent>(&parsed);
  std::optional<NaiveGguf> naive;
  try {
    naive.emplace(file);
  } catch (const std::exception&) {
    return content == nullptr ? "" : "accepted, the naive reading refuses";
  }
  if (content == nullptr) return "refused by " + std::get<store::Violation>(parsed).rule;
  std::map<std::string, NaiveGgufTensor> tensors;
  const auto add = [&](const auto& tensor, const store::GgmlType* type) {
    tensors[tensor.name] = {type->number, tensor.shape,
                            std::string(file.substr(tensor.begin, tensor.bytes()))};
  };
  for (const store::TensorInfo& tensor : content->tensors)
    add(tensor, store::ggml_type_of(tensor.dtype));
  for (const store::OpaqueTensor& tensor : content->opaque)
    add(tensor, store::find_ggml_type(tensor.type));
  if (tensors != naive->tensors) return "other tensors than in the naive reading";
  std::map<std::string, std::string> metadata;
  for (const store::TypedValue& value : content->typed) metadata[value.key] = value.bytes;
  if (metadata != naive->metadata) return "other metadata than in the naive reading";
  for (const auto& [name, tensor] : tensors)
    if (name.empty() || name.size() > store::kGgufNameBytes) return "";
  try {
    const NaiveGguf again(rewritten_gguf(file, *content));
    if (again.tensors != tensors || again.metadata != metadata) return "written otherwise";
  } catch (const std::exception&) {
    return "what is written again is wrong";
  }
  return "";
}

}  // namespace masque::test
