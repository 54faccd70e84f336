#include "text/json_fields.hpp"

#include <limits>

#include <fmt/format.h>

#include "base/error.hpp"

namespace masque::text {

namespace {

std::string_view kind_name(JsonKind kind) {
  switch (kind) {
    case JsonKind::kNull: return "null";
    case JsonKind::kBool: return "true or false";
    case JsonKind::kNumber: return "a number";
    case JsonKind::kString: return "a string";
    case JsonKind::kArray: return "an array";
    case JsonKind::kObject: return "an object";
  }
  return "";
}

}  // namespace

void refuse_json(const JsonValue& at, const std::string& path, std::string_view message) {
  throw InputError(path, fmt::format("byte {}: {}", at.begin, message));
}

const JsonValue* find_field(const JsonValue& json, std::string_view name, JsonKind kind,
                            const std::string& path) {
  const JsonValue* value = json.find(name);
  if (value == nullptr || value->is(JsonKind::kNull)) return nullptr;
  if (!value->is(kind)) {
    refuse_json(
        *value, path,
        fmt::format("'{}' is {}, expected {}", name, kind_name(value->kind), kind_name(kind)));
  }
  return value;
}

const JsonValue& get_field(const JsonValue& json, std::string_view name, JsonKind kind,
                           const std::string& path) {
  const JsonValue* value = find_field(json, name, kind, path);
  if (value == nullptr) {
    refuse_json(json, path, fmt::format("no '{}', expected {}", name, kind_name(kind)));
  }
  return *value;
}

bool bool_field(const JsonValue& json, std::string_view name, bool missing,
                const std::string& path) {
  const JsonValue* value = find_field(json, name, JsonKind::kBool, path);
  return value == nullptr ? missing : value->text == "true";
}

std::string text_field(const JsonValue& json, std::string_view name, std::string_view missing,
                       const std::string& path) {
  const JsonValue* value = find_field(json, name, JsonKind::kString, path);
  return value == nullptr ? std::string(missing) : value->text;
}

std::int32_t id_field(const JsonValue& json, std::string_view name, const std::string& path) {
  const JsonValue& value = get_field(json, name, JsonKind::kNumber, path);
  const auto id = value.integer();
  if (!id || *id > static_cast<std::uint64_t>(std::numeric_limits<std::int32_t>::max())) {
    refuse_json(value, path, fmt::format("'{}' is {}, expected an id", name, value.text));
  }
  return static_cast<std::int32_t>(*id);
}

const std::string& type_field(const JsonValue& json, const std::string& path) {
  return get_field(json, "type", JsonKind::kString, path).text;
}

}  // namespace masque::text
