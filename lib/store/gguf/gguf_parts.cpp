#include "store/gguf/gguf_parts.hpp"

#include <algorithm>
#include <string_view>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/string/parse_number.hpp"
#include "store/gguf/gguf_metadata.hpp"

namespace masque::store {

namespace {

constexpr std::size_t kDigits = 5;
constexpr std::string_view kExtension = ".gguf";
constexpr std::string_view kMiddle = "-of-";

/// What the name of a part says.
struct PartName {
  std::string stem;
  GgufPart part;  ///< from 0, as in the metadata
};

std::optional<std::uint64_t> digits_of(std::string_view text) {
  if (text.size() != kDigits || text.find_first_not_of("0123456789") != std::string_view::npos)
    return std::nullopt;
  return parse_number<std::uint64_t>(text);
}

/// "STEM-00001-of-00003.gguf".
std::optional<PartName> parse_name(std::string_view name) {
  const std::size_t ending = 1 + kDigits + kMiddle.size() + kDigits + kExtension.size();
  if (name.size() < ending || !name.ends_with(kExtension)) return std::nullopt;
  const std::string_view stem = name.substr(0, name.size() - ending);
  name.remove_prefix(stem.size());
  const auto number = digits_of(name.substr(1, kDigits));
  const auto count = digits_of(name.substr(1 + kDigits + kMiddle.size(), kDigits));
  if (name[0] != '-' || name.substr(1 + kDigits, kMiddle.size()) != kMiddle) return std::nullopt;
  if (!number || !count || *number == 0 || *number > *count) return std::nullopt;
  return PartName{std::string(stem), {*number - 1, *count}};
}

std::vector<std::string> all_names(const PartName& name) {
  std::vector<std::string> names;
  for (std::uint64_t i = 1; i <= name.part.count; ++i)
    names.push_back(
        fmt::format("{}-{:05}{}{:05}{}", name.stem, i, kMiddle, name.part.count, kExtension));
  return names;
}

void check_part(const GgufPart& found, const GgufPart& expected, const std::string& path) {
  if (found.number == expected.number && found.count == expected.count) return;
  throw InputError(path,
                   fmt::format("the metadata say part {} of {} of a split model, expected "
                               "part {} of {}",
                               found.number + 1, found.count, expected.number + 1, expected.count));
}

}  // namespace

std::vector<std::string> gguf_part_names(const std::string& name,
                                         std::span<const TypedValue> metadata,
                                         const std::string& path) {
  const auto part = gguf_part(metadata);
  const auto parsed = parse_name(name);
  if (!part || !parsed) return {};
  check_part(*part, parsed->part, path);
  return all_names(*parsed);
}

std::optional<std::string> first_gguf_part(std::span<const std::string> names) {
  if (names.empty()) return std::nullopt;
  const auto parsed = parse_name(names.front());
  if (!parsed || parsed->part.count != names.size()) return std::nullopt;
  std::vector<std::string> sorted(names.begin(), names.end());
  std::ranges::sort(sorted);
  if (sorted != all_names(*parsed)) return std::nullopt;
  return sorted.front();
}

void check_gguf_parts(std::span<const GgufPartFile> files) {
  std::uint64_t tensors = 0;
  for (const GgufPartFile& file : files)
    tensors += file.content->tensors.size() + file.content->opaque.size();
  const std::span<const TypedValue> first = files.front().content->typed;
  for (std::size_t i = 0; i < files.size(); ++i) {
    const std::string& path = files[i].path;
    const std::span<const TypedValue> metadata = files[i].content->typed;
    const auto part = gguf_part(metadata);
    if (!part)
      throw InputError(path, fmt::format("the metadata say that it is a whole model, expected part "
                                         "{} of {} of a split one",
                                         i + 1, files.size()));
    check_part(*part, {i, files.size()}, path);
    const TypedValue* count = find_typed(metadata, "split.tensors.count");
    if (count != nullptr && gguf_integer(*count) != tensors)
      throw InputError(path, fmt::format("split.tensors.count is {}, expected {}, the tensors of "
                                         "all parts",
                                         escape(count->text), tensors));
    for (const TypedValue& value : metadata) {
      // An alignment is that of its own file.
      if (value.key.starts_with("split.") || value.key == "general.alignment") continue;
      const TypedValue* other = find_typed(first, value.key);
      if (other != nullptr && other->bytes == value.bytes) continue;
      throw InputError(path, fmt::format("{} is {}, expected what the first part has: {}",
                                         escape(value.key), escape(value.text),
                                         other == nullptr ? "nothing" : escape(other->text)));
    }
  }
}

}  // namespace masque::store
