#include "base/json/json_settings.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/file/file.hpp"

namespace masque {

namespace {

constexpr std::uint64_t kLargestSettings = 16 << 20;

}  // namespace

std::string described(const JsonValue& value) {
  switch (value.kind) {
    case JsonKind::kString: return fmt::format("'{}'", escape(value.text));
    case JsonKind::kArray: return "a list";
    case JsonKind::kObject: return "an object";
    case JsonKind::kNull:
    case JsonKind::kBool:
    case JsonKind::kNumber: break;
  }
  return escape(value.text);
}

JsonSettings JsonSettings::read(const std::string& path) {
  return {parse_json_file(InputFile::open(path).read_all(kLargestSettings), path), path};
}

JsonSettings::JsonSettings(JsonValue root, std::string path, std::string where)
    : path_(std::move(path)), where_(std::move(where)), root_(std::move(root)) {
  if (!root_.is(JsonKind::kObject))
    throw InputError(path_, fmt::format("{}{}, expected an object",
                                        where_.empty() ? "" : where_ + " ", described(root_)));
}

const JsonValue* JsonSettings::find(std::string_view name) {
  known_.emplace_back(name);
  const JsonValue* value = root_.find(name);
  return value != nullptr && value->is(JsonKind::kNull) ? nullptr : value;
}

bool JsonSettings::flag(std::string_view name, bool missing) {
  const JsonValue* value = find(name);
  if (value == nullptr) return missing;
  if (!value->is(JsonKind::kBool)) refuse(name, "true or false");
  return value->text == "true";
}

std::optional<std::int64_t> JsonSettings::integer(std::string_view name, std::int64_t lowest,
                                                  std::int64_t highest) {
  const JsonValue* value = find(name);
  if (value == nullptr) return std::nullopt;
  const std::optional<std::uint64_t> number = value->integer();
  if (!number) refuse(name, fmt::format("a whole number from {} to {}", lowest, highest));
  if (*number > static_cast<std::uint64_t>(highest))
    refuse(name, fmt::format("at most {}", highest));
  if (static_cast<std::int64_t>(*number) < lowest) refuse(name, fmt::format("at least {}", lowest));
  return static_cast<std::int64_t>(*number);
}

std::optional<std::string> JsonSettings::string(std::string_view name) {
  const JsonValue* value = find(name);
  if (value == nullptr) return std::nullopt;
  if (!value->is(JsonKind::kString)) refuse(name, "a string");
  return value->text;
}

JsonSettings JsonSettings::object(std::string_view name) {
  const JsonValue* value = find(name);
  const std::string where = fmt::format("{}{}.", where_, escape(name));
  if (value == nullptr) {
    JsonValue none;
    none.kind = JsonKind::kObject;
    return {std::move(none), path_, where};
  }
  if (!value->is(JsonKind::kObject)) refuse(name, "an object");
  return {*value, path_, where};
}

void JsonSettings::ignore(std::initializer_list<std::string_view> names) {
  known_.insert(known_.end(), names.begin(), names.end());
}

void JsonSettings::need(std::string_view name, std::string_view only) {
  const JsonValue* value = find(name);
  if (value == nullptr || (value->is(JsonKind::kString) && value->text == only)) return;
  refuse(name, fmt::format("'{}'", only));
}

void JsonSettings::refuse(std::string_view name, std::string_view expected) {
  const JsonValue* value = root_.find(name);
  throw InputError(path_, fmt::format("{}{} is {}, expected {}", where_, escape(name),
                                      value == nullptr ? "absent" : described(*value), expected));
}

std::vector<std::string> JsonSettings::unknown() const {
  std::vector<std::string> names;
  for (const JsonMember& member : root_.members) {
    if (std::ranges::find(known_, member.name) == known_.end())
      names.push_back(where_ + member.name);
  }
  return names;
}

}  // namespace masque
