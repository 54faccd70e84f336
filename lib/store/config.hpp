// config.json of a model (or Google's): the few fields that weights need, and the text for edits.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json/json.hpp"
#include "tensor/dtype.hpp"

namespace masque::store {

/// A parsed config.json. Unknown fields are kept in the text.
class ModelConfig {
 public:
  /// Reads the file `path` of at most 16 MiB. Throws InputError if it is no JSON object.
  static ModelConfig read(const std::string& path);
  /// Reads `text`, of which `path` is the name in messages. Throws as read().
  static ModelConfig parse(std::string text, const std::string& path);
  /// The config of `folder` (config_name); nothing if there is none. Throws as read().
  static std::optional<ModelConfig> find(const std::string& folder);

  /// The path of the file, as given.
  const std::string& path() const { return path_; }
  /// The text of the whole file.
  const std::string& text() const { return text_; }

  /// The field `model_type`; empty if absent or no string.
  std::string model_type() const;
  /// The list `architectures`: names of classes of transformers; empty if absent or no list.
  std::vector<std::string> architectures() const;
  /// The field `tie_word_embeddings`. Nothing if absent or null. Throws as flag().
  std::optional<bool> tie_word_embeddings() const;
  /// The field `name`, a whole number from 0; nothing if absent or null. Throws InputError if it is
  /// something else.
  std::optional<std::uint64_t> size(std::string_view name) const;
  /// The field `name`, a number; nothing if absent or null. Throws InputError if it is something
  /// else.
  std::optional<double> number(std::string_view name) const;
  /// The field `name`, a string; nothing if absent or anything else. Throws nothing.
  std::optional<std::string> string(std::string_view name) const;
  /// The field `name`, true or false; nothing if absent or null. Throws InputError if it is
  /// something else.
  std::optional<bool> flag(std::string_view name) const;
  /// The strings of the list `name`; nothing if absent or null. Throws InputError for anything
  /// else.
  std::optional<std::vector<std::string>> strings(std::string_view name) const;
  /// The object `name` inside as a config of its own (its text is the whole file's, copied);
  /// nothing if absent or null. Throws InputError for anything else.
  std::optional<ModelConfig> object(std::string_view name) const;
  /// Whether the field `name` is present and not null.
  bool has(std::string_view name) const { return member(name) != nullptr; }
  /// Whether the field `name` is present and null.
  bool is_null(std::string_view name) const;
  /// The value of the field `name` as the file spells it; empty if absent or null. For messages.
  std::string spelling(std::string_view name) const;

 private:
  const JsonValue* member(std::string_view name) const;

  std::string path_;
  std::string text_;
  JsonValue root_;
};

/// The name of the config of `folder`: config.json, else what Google's folders have, the first of
/// bert_config.json, albert_config.json and electra_config.json; config.json if there is none.
std::string config_name(const std::string& folder);

/// The field that says how the weights of a model are quantised.
inline constexpr const char* kQuantizationKey = "quantization_config";

/// `config` without the field kQuantizationKey: that of the same model with weights that are not
/// quantised.
ModelConfig without_quantization(const ModelConfig& config);

/// The text of `config` with the name of the floating-point type `dtype` in its fields `dtype` and
/// `torch_dtype`, where it has them.
std::string with_dtype(const ModelConfig& config, DType dtype);

}  // namespace masque::store
