// Members of tokenizer.json, with the place in the file where one is wrong.
#pragma once

#include <algorithm>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "base/escape.hpp"
#include "base/json/json.hpp"
#include "base/string/comma_list.hpp"

namespace masque::text {

/// Throws InputError "path: byte N: message", N the begin of `at`.
[[noreturn]] void refuse_json(const JsonValue& at, const std::string& path,
                              std::string_view message);

/// The member `name` of `json`; nullptr if it is missing or null. Throws InputError naming `path`
/// if it is not of the kind `kind`.
const JsonValue* find_field(const JsonValue& json, std::string_view name, JsonKind kind,
                            const std::string& path);
/// As find_field() of `json`, `name`, `kind` and `path`, but throws InputError too if it is
/// missing.
const JsonValue& get_field(const JsonValue& json, std::string_view name, JsonKind kind,
                           const std::string& path);

/// The flag `name` of `json`; `missing` if it is not there or null. Throws InputError naming `path`
/// if it is no flag.
bool bool_field(const JsonValue& json, std::string_view name, bool missing,
                const std::string& path);
/// The text `name` of `json`; `missing` if it is not there or null. Throws InputError naming `path`
/// if it is no text.
std::string text_field(const JsonValue& json, std::string_view name, std::string_view missing,
                       const std::string& path);
/// The member `name` of `json`, a number from 0 to 2³¹ − 1. Throws InputError naming `path` if it
/// is missing or anything else.
std::int32_t id_field(const JsonValue& json, std::string_view name, const std::string& path);
/// The member "type" of `json`. Throws InputError naming `path` if it is missing or no text.
const std::string& type_field(const JsonValue& json, const std::string& path);

/// The one of `kinds`, which are sorted by name, that the member "type" of `json` names; `what` is
/// "decoder" or the like. Throws InputError naming `path` for an unknown one, with all that there
/// are.
template <class Kind>
const Kind& kind_of_type(std::span<const Kind> kinds, const JsonValue& json, std::string_view what,
                         const std::string& path) {
  const std::string& type = type_field(json, path);
  const auto found = std::ranges::find(kinds, type, &Kind::name);
  if (found != kinds.end()) return *found;
  refuse_json(json, path,
              fmt::format("{} '{}', expected one of {}", what, escape(type),
                          comma_list(kinds, [](const Kind& kind) { return kind.name; })));
}

// Reading one part of a tokenizer.json (a normalizer, a pre-tokenizer): its fields, with errors
// that name the part.

/// The fields of a part. The JSON and the path must outlive it. Its functions throw InputError
/// "path: normalizer 'Strip': …".
class PartFields {
 public:
  /// The part `json` of the file `path`. `what` is "normalizer", "pre-tokenizer" or "decoder".
  /// Throws if the value is no object with a `type`.
  PartFields(const JsonValue& json, std::string_view what, const std::string& path);

  /// The object of the part.
  const JsonValue& json() const { return json_; }
  /// The file that it is from.
  const std::string& path() const { return path_; }
  /// Its "type".
  const std::string& type() const { return type_; }
  /// "normalizer 'Strip'", for messages.
  std::string title() const;

  /// The field `name` of the kind `kind`; throws if it is missing or of another kind.
  const JsonValue& need(std::string_view name, JsonKind kind) const;
  /// The flag `name`; throws if it is missing or no flag.
  bool flag(std::string_view name) const;
  /// The text `name`; throws if it is missing or no text.
  std::string text(std::string_view name) const;
  /// The flag `name`, or nothing if the field is missing or null; throws if it is no flag.
  std::optional<bool> optional_flag(std::string_view name) const;
  /// The text `name`, or nothing if the field is missing or null; throws if it is no text.
  std::optional<std::string> optional_text(std::string_view name) const;

  /// Throws "path: normalizer 'Strip': message" with this `message`.
  [[noreturn]] void refuse(const std::string& message) const;
  /// The one of `kinds` whose name is the type. Throws "path: normalizer 'X' is not supported".
  template <class Kind>
  const Kind& kind_in(std::span<const Kind> kinds) const {
    const auto found = std::ranges::find(kinds, type_, &Kind::name);
    if (found != kinds.end()) return *found;
    refuse_type();
  }

 private:
  [[noreturn]] void refuse_type() const;

  const JsonValue& json_;
  std::string what_;
  const std::string& path_;
  std::string type_;
};

}  // namespace masque::text
