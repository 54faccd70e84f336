// Reading one part of a tokenizer.json (a normalizer, a pre-tokenizer): its fields, with errors
// that name the part.
#pragma once

#include <algorithm>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/json.hpp"

namespace masque::text {

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
