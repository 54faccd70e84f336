// Reading one part of a tokenizer.json (a normalizer, a pre-tokenizer): its fields, with errors
// that name the part.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/json.hpp"

namespace masque::text {

/// The fields of a part. Its functions throw InputError "path: normalizer 'Strip': …".
class PartFields {
 public:
  /// `what` is "normalizer", "pre-tokenizer" or "decoder". Throws if the value is no object with a
  /// `type`.
  PartFields(const JsonValue& json, std::string_view what, const std::string& path);

  const JsonValue& json() const { return json_; }
  const std::string& path() const { return path_; }
  const std::string& type() const { return type_; }
  /// "normalizer 'Strip'", for messages.
  std::string title() const;

  /// A field of that kind; throws if it is missing.
  const JsonValue& need(std::string_view name, JsonKind kind) const;
  bool flag(std::string_view name) const;
  std::string text(std::string_view name) const;
  /// The flag, or nothing if the field is missing or null.
  std::optional<bool> optional_flag(std::string_view name) const;
  std::optional<std::string> optional_text(std::string_view name) const;

  [[noreturn]] void refuse(const std::string& message) const;
  /// "path: normalizer 'X' is not supported".
  [[noreturn]] void refuse_type() const;

 private:
  const JsonValue& json_;
  std::string what_;
  const std::string& path_;
  std::string type_;
};

}  // namespace masque::text
