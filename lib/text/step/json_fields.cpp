#include "text/step/json_fields.hpp"

#include <limits>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/escape.hpp"

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

PartFields::PartFields(const JsonValue& json, std::string_view what, const std::string& path)
    : json_(json), what_(what), path_(path) {
  const JsonValue* type = json.find("type");
  if (type == nullptr || !type->is(JsonKind::kString)) {
    throw InputError(path, fmt::format("a {} without its type", what));
  }
  type_ = type->text;
}

const JsonValue& PartFields::need(std::string_view name, JsonKind kind) const {
  const JsonValue* value = json_.find(name);
  if (value == nullptr) refuse(fmt::format("'{}' is missing", name));
  if (!value->is(kind)) refuse(fmt::format("'{}' has the wrong type", name));
  return *value;
}

bool PartFields::flag(std::string_view name) const {
  return need(name, JsonKind::kBool).text == "true";
}

std::string PartFields::text(std::string_view name) const {
  return need(name, JsonKind::kString).text;
}

std::optional<bool> PartFields::optional_flag(std::string_view name) const {
  const JsonValue* value = json_.find(name);
  if (value == nullptr || value->is(JsonKind::kNull)) return std::nullopt;
  return flag(name);
}

std::optional<std::string> PartFields::optional_text(std::string_view name) const {
  const JsonValue* value = json_.find(name);
  if (value == nullptr || value->is(JsonKind::kNull)) return std::nullopt;
  return text(name);
}

std::string PartFields::title() const { return fmt::format("{} '{}'", what_, escape(type_)); }

void PartFields::refuse(const std::string& message) const {
  throw InputError(path_, fmt::format("{}: {}", title(), message));
}

void PartFields::refuse_type() const {
  throw InputError(path_, fmt::format("{} is not supported", title()));
}

}  // namespace masque::text
