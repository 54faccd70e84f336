// A JSON file of settings: every key is used, known to change nothing, or reported.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json/json.hpp"

namespace masque {

/// The members of an object of settings. A member that is null counts as absent. Remembers which
/// members were asked for: the others are what nobody understands.
class JsonSettings {
 public:
  /// Reads the file `path` of at most 16 MiB. Throws InputError for a file that cannot be read, and
  /// for what is no JSON object.
  static JsonSettings read(const std::string& path);
  /// The members of `root`, of the file `path`; `where` is what messages put in front of names.
  /// Throws InputError if it is no object.
  JsonSettings(JsonValue root, std::string path, std::string where = {});

  /// The path of the file, as given.
  const std::string& path() const { return path_; }
  /// Whether there are no members.
  bool empty() const { return root_.members.empty(); }
  /// The member `name`, which lives as long as this object; nullptr if absent or null.
  const JsonValue* find(std::string_view name);
  /// The member `name`, true or false; `missing` if absent. Throws InputError if it is something
  /// else.
  bool flag(std::string_view name, bool missing);
  /// The member `name`, a whole number from `lowest` to `highest`; nothing if absent. Throws
  /// InputError if it is something else.
  std::optional<std::int64_t> integer(std::string_view name, std::int64_t lowest,
                                      std::int64_t highest);
  /// The member `name`, a string; nothing if absent. Throws InputError if it is something else.
  std::optional<std::string> string(std::string_view name);
  /// The object `name`, empty if absent. Throws InputError if it is something else.
  JsonSettings object(std::string_view name);
  /// Says that the members `names` change nothing.
  void ignore(std::initializer_list<std::string_view> names);
  /// Throws InputError if the member `name` is there and not the string `only`.
  void need(std::string_view name, std::string_view only);
  /// Throws InputError "PATH: NAME is VALUE, expected EXPECTED" about the member `name`, which is
  /// there.
  [[noreturn]] void refuse(std::string_view name, std::string_view expected);

  /// The names of the members that nobody has asked for, in the order of the file.
  std::vector<std::string> unknown() const;

 private:
  std::string path_;
  std::string where_;
  JsonValue root_;
  std::vector<std::string> known_;
};

/// `value` as messages show it: a number, bool or null as it is spelled, a string between ' ', and
/// "a list" and "an object".
std::string described(const JsonValue& value);

}  // namespace masque
