// Members of tokenizer.json, with the place in the file where one is wrong.
#pragma once

#include <string>
#include <string_view>

#include <fmt/format.h>

#include "base/escape.hpp"
#include "base/json.hpp"
#include "base/registry.hpp"

namespace masque::text {

/// Throws InputError "path: byte N: message".
[[noreturn]] void refuse_json(const JsonValue& at, const std::string& path,
                              std::string_view message);

/// The member `name`; nullptr if it is missing or null. Throws InputError if it is of another kind.
const JsonValue* find_field(const JsonValue& json, std::string_view name, JsonKind kind,
                            const std::string& path);
/// The same, but it must be there.
const JsonValue& get_field(const JsonValue& json, std::string_view name, JsonKind kind,
                           const std::string& path);

bool bool_field(const JsonValue& json, std::string_view name, bool missing,
                const std::string& path);
std::string text_field(const JsonValue& json, std::string_view name, std::string_view missing,
                       const std::string& path);
/// A number from 0 to 2³¹ − 1, which must be there.
std::int32_t id_field(const JsonValue& json, std::string_view name, const std::string& path);
/// The member "type". Throws InputError.
const std::string& type_field(const JsonValue& json, const std::string& path);

/// The registered Kind that the member "type" names; `what` is "decoder" or the like. Throws
/// InputError for an unknown one, with all that there are.
template <class Kind>
const Kind& kind_of_type(const JsonValue& json, std::string_view what, const std::string& path) {
  const auto& kinds = Registry<Kind>::of_process();
  const std::string& type = type_field(json, path);
  if (const Kind* kind = kinds.find(type); kind != nullptr) return *kind;
  refuse_json(json, path,
              fmt::format("{} '{}', expected one of {}", what, escape(type), kinds.names()));
}

}  // namespace masque::text
