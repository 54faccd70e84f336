#include "store/config.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/file/file.hpp"

namespace masque::store {

namespace {

constexpr std::array kNames{"config.json", "bert_config.json", "albert_config.json",
                            "electra_config.json"};

}  // namespace

std::string config_name(const std::string& folder) {
  const auto is_there = [&](const char* name) { return exists(join(folder, name)); };
  const auto* found = std::ranges::find_if(kNames, is_there);
  return found == kNames.end() ? kNames[0] : *found;
}

ModelConfig ModelConfig::read(const std::string& path) {
  return parse(InputFile::open(path).read_all(16 << 20), path);
}

ModelConfig ModelConfig::parse(std::string text, const std::string& path) {
  ModelConfig config;
  config.path_ = path;
  config.text_ = std::move(text);
  config.root_ = parse_json_file(config.text_, path);
  if (!config.root_.is(JsonKind::kObject))
    throw InputError(path, "is not a JSON object, expected one");
  return config;
}

std::optional<ModelConfig> ModelConfig::find(const std::string& folder) {
  const std::string path = join(folder, config_name(folder));
  if (!exists(path)) return std::nullopt;
  return read(path);
}

const JsonValue* ModelConfig::member(std::string_view name) const {
  const JsonValue* value = root_.find(name);
  return value == nullptr || value->is(JsonKind::kNull) ? nullptr : value;
}

std::optional<std::string> ModelConfig::string(std::string_view name) const {
  const JsonValue* value = member(name);
  if (value == nullptr || !value->is(JsonKind::kString)) return std::nullopt;
  return value->text;
}

std::string ModelConfig::model_type() const { return string("model_type").value_or(""); }

std::vector<std::string> ModelConfig::architectures() const {
  std::vector<std::string> names;
  if (const JsonValue* list = member("architectures")) {
    for (const JsonValue& item : list->items) names.push_back(item.text);
  }
  return names;
}

std::optional<bool> ModelConfig::tie_word_embeddings() const { return flag("tie_word_embeddings"); }

std::optional<bool> ModelConfig::flag(std::string_view name) const {
  const JsonValue* value = member(name);
  if (value == nullptr) return std::nullopt;
  if (!value->is(JsonKind::kBool)) {
    throw InputError(path_,
                     fmt::format("{} (byte {}): expected true or false", name, value->begin));
  }
  return value->text == "true";
}

std::optional<std::vector<std::string>> ModelConfig::strings(std::string_view name) const {
  const JsonValue* value = member(name);
  if (value == nullptr) return std::nullopt;
  const auto is_string = [](const JsonValue& item) { return item.is(JsonKind::kString); };
  if (!value->is(JsonKind::kArray) || !std::ranges::all_of(value->items, is_string)) {
    throw InputError(path_,
                     fmt::format("{} (byte {}): expected a list of strings", name, value->begin));
  }
  std::vector<std::string> strings;
  strings.reserve(value->items.size());
  for (const JsonValue& item : value->items) strings.push_back(item.text);
  return strings;
}

std::optional<ModelConfig> ModelConfig::object(std::string_view name) const {
  const JsonValue* value = member(name);
  if (value == nullptr) return std::nullopt;
  if (!value->is(JsonKind::kObject)) {
    throw InputError(path_, fmt::format("{} (byte {}): expected an object", name, value->begin));
  }
  ModelConfig inner;
  inner.path_ = path_;
  inner.text_ = text_;
  inner.root_ = *value;
  return inner;
}

bool ModelConfig::is_null(std::string_view name) const {
  const JsonValue* value = root_.find(name);
  return value != nullptr && value->is(JsonKind::kNull);
}

std::string ModelConfig::spelling(std::string_view name) const {
  const JsonValue* value = member(name);
  return value == nullptr ? std::string() : text_.substr(value->begin, value->end - value->begin);
}

std::optional<std::uint64_t> ModelConfig::size(std::string_view name) const {
  const JsonValue* value = member(name);
  if (value == nullptr) return std::nullopt;
  const auto size = value->integer();
  if (!size) {
    throw InputError(path_,
                     fmt::format("{} (byte {}): expected a whole number", name, value->begin));
  }
  return size;
}

std::optional<double> ModelConfig::number(std::string_view name) const {
  const JsonValue* value = member(name);
  if (value == nullptr) return std::nullopt;
  const auto number = value->number();
  if (!number) {
    throw InputError(path_, fmt::format("{} (byte {}): expected a number", name, value->begin));
  }
  return number;
}

ModelConfig without_quantization(const ModelConfig& config) {
  return ModelConfig::parse(erase_json_member(config.text(), {kQuantizationKey}), config.path());
}

namespace {

std::string dtype_in_config(DType dtype) {
  switch (dtype) {
    case DType::kF16: return "float16";
    case DType::kBF16: return "bfloat16";
    case DType::kF32: return "float32";
    case DType::kF64: return "float64";
    case DType::kF8E4M3: return "float8_e4m3fn";
    case DType::kF8E5M2: return "float8_e5m2";
    case DType::kF8E4M3Fnuz: return "float8_e4m3fnuz";
    default: return "float8_e5m2fnuz";
  }
}

}  // namespace

std::string with_dtype(const ModelConfig& config, DType dtype) {
  std::string text = config.text();
  for (const char* field : {"dtype", "torch_dtype"}) {
    const auto before = config.string(field);
    if (before && *before != dtype_in_config(dtype)) {
      text = set_json_member(text, {field}, quote_json(dtype_in_config(dtype)));
    }
  }
  return text;
}

}  // namespace masque::store
