#include "text/part_fields.hpp"

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/escape.hpp"

namespace masque::text {

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
