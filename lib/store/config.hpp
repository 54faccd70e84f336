// config.json of a model (or Google's): the few fields that weights need, and the text for edits.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.hpp"
#include "tensor/dtype.hpp"

namespace masque::store {

/// A parsed config.json. Unknown fields are kept in the text.
class ModelConfig {
 public:
  /// Reads a file of at most 16 MiB. Throws InputError if it is no JSON object.
  static ModelConfig read(const std::string& path);
  /// The same of a text of which `path` is the name in messages.
  static ModelConfig parse(std::string text, const std::string& path);
  /// The config of a folder (config_name); nothing if there is none.
  static std::optional<ModelConfig> find(const std::string& folder);

  const std::string& path() const { return path_; }
  const std::string& text() const { return text_; }

  /// Empty if absent.
  std::string model_type() const;
  std::vector<std::string> architectures() const;
  /// Nothing if absent or null.
  std::optional<bool> tie_word_embeddings() const;
  /// A whole number that is present and not null. Throws InputError if it is something else.
  std::optional<std::uint64_t> size(std::string_view name) const;
  std::optional<double> number(std::string_view name) const;
  std::optional<std::string> string(std::string_view name) const;
  /// true or false. Throws InputError if it is present, not null, and something else.
  std::optional<bool> flag(std::string_view name) const;
  /// The strings of a list; nothing if absent or null. Throws InputError for anything else.
  std::optional<std::vector<std::string>> strings(std::string_view name) const;
  /// An object inside as a config of its own (its text is the whole file's).
  std::optional<ModelConfig> object(std::string_view name) const;
  /// Whether it is present and not null.
  bool has(std::string_view name) const { return member(name) != nullptr; }
  /// A value as the file spells it; empty if absent. For messages.
  std::string spelling(std::string_view name) const;

 private:
  const JsonValue* member(std::string_view name) const;

  std::string path_;
  std::string text_;
  JsonValue root_;
};

/// The name of a folder's config: config.json, else what Google's folders have, the first of
/// bert_config.json, albert_config.json and electra_config.json; config.json if there is none.
std::string config_name(const std::string& folder);

/// The config's text with the name of an element type in `dtype` and `torch_dtype`, where it has
/// them.
std::string with_dtype(const ModelConfig& config, DType dtype);

}  // namespace masque::store
