#include "store/gguf/gguf_tokenizer.hpp"

#include <array>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/error.hpp"
#include "store/gguf/gguf_metadata.hpp"
#include "store/gguf/gguf_names.hpp"

namespace masque::store {

namespace {

const TypedValue* find(const Checkpoint& checkpoint, std::string_view key) {
  return find_gguf_value(checkpoint, fmt::format("tokenizer.ggml.{}", key));
}

std::string text_of(const Checkpoint& checkpoint, std::string_view key) {
  const TypedValue* value = find(checkpoint, key);
  return value == nullptr ? std::string() : value->text;
}

std::optional<bool> flag_of(const Checkpoint& checkpoint, std::string_view key) {
  const TypedValue* value = find(checkpoint, key);
  if (value == nullptr) return std::nullopt;
  if (value->type != "BOOL")
    throw InputError(checkpoint.path(),
                     fmt::format("{} is {}, expected BOOL", value->key, value->type));
  return value->json == "true";
}

/// The numbers of an array; empty if there is none.
template <class Number>
std::vector<Number> numbers_of(const Checkpoint& checkpoint, std::string_view key, GgufType type) {
  const TypedValue* value = find(checkpoint, key);
  const auto bytes = value == nullptr ? std::nullopt : gguf_elements(*value, type);
  std::vector<Number> numbers(bytes ? bytes->size() / sizeof(Number) : 0);
  if (bytes) std::memcpy(numbers.data(), bytes->data(), numbers.size() * sizeof(Number));
  return numbers;
}

std::vector<std::string> texts_of(const Checkpoint& checkpoint, std::string_view key) {
  const TypedValue* value = find(checkpoint, key);
  if (value == nullptr) return {};
  return gguf_texts(*value).value_or(std::vector<std::string>());
}

constexpr std::array<std::pair<const char*, const char*>, 7> kRoles{
    {{"bos", "bos"},
     {"eos", "eos"},
     {"unk", "unknown"},
     {"sep", "seperator"},  // as the format spells it
     {"pad", "padding"},
     {"cls", "cls"},
     {"mask", "mask"}}};

template <class Number>
std::string bytes_of(const std::vector<Number>& numbers) {
  const auto bytes = std::as_bytes(std::span(numbers));
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

text::GgufVocabulary gguf_vocabulary(const Checkpoint& checkpoint) {
  text::GgufVocabulary vocabulary;
  vocabulary.model = text_of(checkpoint, "model");
  vocabulary.pre = text_of(checkpoint, "pre");
  vocabulary.tokens = texts_of(checkpoint, "tokens");
  vocabulary.scores = numbers_of<float>(checkpoint, "scores", GgufType::kFloat32);
  vocabulary.types = numbers_of<int>(checkpoint, "token_type", GgufType::kInt32);
  vocabulary.merges = texts_of(checkpoint, "merges");
  vocabulary.add_bos = flag_of(checkpoint, "add_bos_token");
  vocabulary.add_eos = flag_of(checkpoint, "add_eos_token");
  vocabulary.add_space_prefix = flag_of(checkpoint, "add_space_prefix");
  vocabulary.remove_extra_whitespaces = flag_of(checkpoint, "remove_extra_whitespaces");
  // Writers have bytes of either kind.
  for (const GgufType type : {GgufType::kUint8, GgufType::kInt8}) {
    const auto bytes = numbers_of<char>(checkpoint, "precompiled_charsmap", type);
    if (!bytes.empty()) vocabulary.charsmap.assign(bytes.begin(), bytes.end());
  }
  for (const auto& [role, name] : kRoles) {
    const TypedValue* value = find(checkpoint, fmt::format("{}_token_id", name));
    const auto id = value == nullptr ? std::nullopt : gguf_integer(*value);
    // Some writers have −1, or 2³² − 1, for no token.
    if (id && *id < vocabulary.tokens.size())
      vocabulary.roles.emplace_back(role, static_cast<TokenId>(*id));
  }
  return vocabulary;
}

std::vector<TypedValue> gguf_tokenizer_metadata(const text::GgufVocabulary& vocabulary) {
  std::vector<TypedValue> values;
  const auto key = [](std::string_view name) { return fmt::format("tokenizer.ggml.{}", name); };
  values.push_back(make_gguf_text(key("model"), vocabulary.model));
  if (!vocabulary.pre.empty()) values.push_back(make_gguf_text(key("pre"), vocabulary.pre));
  values.push_back(make_gguf_texts(kGgufTokens, vocabulary.tokens));
  if (!vocabulary.scores.empty())
    values.push_back(make_gguf_array(kGgufScores, GgufType::kFloat32, bytes_of(vocabulary.scores)));
  const std::vector<std::int32_t> types(vocabulary.types.begin(), vocabulary.types.end());
  if (!types.empty())
    values.push_back(make_gguf_array(kGgufTokenTypes, GgufType::kInt32, bytes_of(types)));
  if (!vocabulary.merges.empty()) values.push_back(make_gguf_texts(kGgufMerges, vocabulary.merges));
  for (const auto& [role, name] : kRoles) {
    for (const auto& [own, id] : vocabulary.roles) {
      if (own == role)
        values.push_back(make_gguf_uint32(key(fmt::format("{}_token_id", name)),
                                          static_cast<std::uint32_t>(id)));
    }
  }
  for (const auto& [name, flag] : {std::pair("add_bos_token", vocabulary.add_bos),
                                   {"add_eos_token", vocabulary.add_eos},
                                   {"add_space_prefix", vocabulary.add_space_prefix}}) {
    if (flag) values.push_back(make_gguf_bool(key(name), *flag));
  }
  return values;
}

}  // namespace masque::store
