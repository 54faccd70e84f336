// GGUF files of version 3: metadata and tensors in the order given, each padded to the alignment.
#include <algorithm>
#include <array>
#include <map>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/string/utf8.hpp"
#include "store/gguf/gguf.hpp"
#include "store/gguf/gguf_metadata.hpp"
#include "store/gguf/gguf_names.hpp"
#include "store/weights_writer.hpp"

namespace masque::store {

namespace {

/// Keys whose type the format fixes.
constexpr std::array<std::string_view, 4> kNoTexts{kGgufAlignmentKey, kGgufTokens, kGgufScores,
                                                   kGgufTokenTypes};

bool holds(DType dtype) { return ggml_type_of(dtype) != nullptr; }

/// A tensor of either kind.
struct Stored {
  std::string_view name;
  const GgmlType* type;
  const Shape* shape;
  std::uint64_t bytes;
  const Source* source;
};

/// All tensors: opaque ones after those that they stood after, at the end if these are gone.
std::vector<Stored> in_order(const OutputWeights& weights) {
  std::vector<Stored> all;
  std::multimap<std::string_view, const OutputOpaque*> after;
  for (const OutputOpaque& tensor : weights.opaque) after.emplace(tensor.after, &tensor);
  const auto add_after = [&](std::string_view name) {
    const auto [first, last] = after.equal_range(name);
    for (auto at = first; at != last; ++at) {
      const OpaqueTensor& info = at->second->info;
      const GgmlType* type = find_ggml_type(info.type);
      MASQUE_CHECK(type != nullptr);
      all.push_back({info.name, type, &info.shape, info.bytes(), &at->second->source});
    }
    after.erase(first, last);
  };
  add_after("");
  for (const auto& [info, source] : weights.tensors) {
    all.push_back({info.name, ggml_type_of(info.dtype), &info.shape,
                   byte_count(info.dtype, info.shape).value(), &source});
    add_after(info.name);
  }
  while (!after.empty()) add_after(after.begin()->first);
  return all;
}

/// Metadata in file order: those with types, then texts that are new.
std::vector<TypedValue> metadata_of(const OutputWeights& weights, const std::string& path) {
  std::vector<TypedValue> values;
  for (const TypedValue& value : weights.typed) {
    if (value.type != "STRING") {
      values.push_back(value);
    } else if (const std::string* text = find_metadata(weights.metadata, value.key)) {
      values.push_back(make_gguf_text(value.key, *text));
    }
  }
  std::ptrdiff_t general = 0;  // new ones of these come first, as programs write them
  for (const auto& [key, text] : weights.metadata) {
    if (find_typed(weights.typed, key) != nullptr) continue;
    if (key.empty() || key.size() > kGgufKeyBytes || !is_ascii(key)) {
      throw InputError(path, fmt::format("metadata '{}': GGUF has keys of 1 to {} bytes of ASCII",
                                         escape(key), kGgufKeyBytes));
    }
    if (std::ranges::find(kNoTexts, key) != kNoTexts.end()) {
      throw InputError(path, fmt::format("metadata '{}' is a text, which GGUF does not have there",
                                         escape(key)));
    }
    const auto place = key.starts_with("general.") ? values.begin() + general++ : values.end();
    values.insert(place, make_gguf_text(key, text));
  }
  return values;
}

void check(const Stored& tensor, const std::string& path) {
  const auto refuse = [&](const std::string& what) {
    throw InputError(path, fmt::format("tensor '{}': {}", escape(tensor.name), what));
  };
  if (tensor.name.empty() || tensor.name.size() > kGgufNameBytes) {
    refuse(fmt::format("a name of {} bytes, GGUF has 1 to {}", tensor.name.size(), kGgufNameBytes));
  }
  if (tensor.shape->size() > kGgufRank)
    refuse(fmt::format("{} dimensions, GGUF has at most {}", tensor.shape->size(), kGgufRank));
}

std::uint64_t padding(std::uint64_t size, std::uint64_t alignment) {
  return (alignment - size % alignment) % alignment;
}

std::string header_of(const std::vector<TypedValue>& metadata, const std::vector<Stored>& tensors,
                      std::uint64_t alignment, const std::string& path) {
  std::string out = "GGUF";
  append_number(out, std::uint32_t{3});
  append_number(out, static_cast<std::uint64_t>(tensors.size()));
  append_number(out, static_cast<std::uint64_t>(metadata.size()));
  for (const TypedValue& value : metadata) {
    append_text(out, value.key);
    out += value.bytes;
  }
  std::uint64_t offset = 0;
  for (const Stored& tensor : tensors) {
    check(tensor, path);
    append_text(out, tensor.name);
    append_number(out, static_cast<std::uint32_t>(tensor.shape->size()));
    std::for_each(tensor.shape->rbegin(), tensor.shape->rend(),
                  [&](std::uint64_t dimension) { append_number(out, dimension); });
    append_number(out, tensor.type->number);
    append_number(out, offset);
    const std::uint64_t end = place_after(offset, tensor.bytes, path);
    offset = place_after(end, padding(end, alignment), path);
  }
  out.append(padding(out.size(), alignment), '\0');
  return out;
}

FilePlan plan(const OutputWeights& weights, const std::string& path) {
  const std::vector<TypedValue> metadata = metadata_of(weights, path);
  const TypedValue* stated = find_typed(metadata, kGgufAlignmentKey);
  const std::uint64_t alignment =
      stated == nullptr ? kGgufAlignment : gguf_integer(*stated).value_or(kGgufAlignment);
  const std::vector<Stored> tensors = in_order(weights);
  std::string header = header_of(metadata, tensors, alignment, path);
  FilePlan plan;
  const std::uint64_t size = header.size();
  plan.parts.push_back({size, Literal{std::move(header)}});
  for (const Stored& tensor : tensors) {
    plan.parts.push_back({tensor.bytes, *tensor.source});
    if (const std::uint64_t zeros = padding(tensor.bytes, alignment); zeros > 0)
      plan.parts.push_back({zeros, Literal{std::string(zeros, '\0')}});
  }
  return plan;
}

const WeightsWriter kWriter{.name = "gguf",
                            .extension = ".gguf",
                            .single = "model.gguf",
                            .shard = "",
                            .has_metadata = true,
                            .has_opaque = true,
                            .has_typed = true,
                            .holds = holds,
                            .plan = plan};
const WriterRegistration kRegistration{kWriter};

}  // namespace

}  // namespace masque::store
