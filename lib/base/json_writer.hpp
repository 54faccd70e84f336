// JSON being written: compact, in the order of the calls.
#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>

namespace masque {

/// Appends `text` as a JSON string, quotes included: only `"`, `\` and control characters are
/// escaped.
void append_json_string(std::string_view text, std::string& out);

/// Appends JSON to a text, with the commas and colons that it needs and without blanks. What it
/// writes is JSON if begin and end calls fit and every key has one value; none of that is checked.
class JsonWriter {
 public:
  /// `out` outlives the writer, and may get other text in between.
  explicit JsonWriter(std::string& out) : out_(out) {}

  JsonWriter& begin_object() { return open('{'); }
  JsonWriter& end_object() { return close('}'); }
  JsonWriter& begin_array() { return open('['); }
  JsonWriter& end_array() { return close(']'); }

  /// The name of a member; its value is what comes next.
  JsonWriter& key(std::string_view name);

  JsonWriter& value(std::string_view text);
  JsonWriter& value(const char* text) { return value(std::string_view(text)); }
  JsonWriter& value(std::same_as<bool> auto truth) { return raw(truth ? "true" : "false"); }
  JsonWriter& value(std::signed_integral auto number) { return whole(std::int64_t{number}); }
  JsonWriter& value(std::unsigned_integral auto number) requires(
      !std::same_as<decltype(number), bool>) {
    return natural(std::uint64_t{number});
  }
  /// The shortest spelling that is read back the same; null for NaN and infinity.
  JsonWriter& value(double number);
  JsonWriter& null() { return raw("null"); }
  /// A value as the caller has spelled it, or members with commas between; nothing if it is empty.
  JsonWriter& raw(std::string_view json);

  /// A key with its value.
  template <class T>
  JsonWriter& member(std::string_view name, const T& its_value) {
    return key(name).value(its_value);
  }
  JsonWriter& raw_member(std::string_view name, std::string_view json) {
    return key(name).raw(json);
  }
  /// An array of values.
  template <class List>
  JsonWriter& array(const List& items) {
    begin_array();
    for (const auto& item : items) value(item);
    return end_array();
  }

 private:
  void separate() {
    if (comma_) out_ += ',';
    comma_ = true;
  }
  JsonWriter& open(char bracket) {
    separate();
    out_ += bracket;
    comma_ = false;
    return *this;
  }
  JsonWriter& close(char bracket) {
    out_ += bracket;
    comma_ = true;
    return *this;
  }
  JsonWriter& whole(std::int64_t number);
  JsonWriter& natural(std::uint64_t number);

  std::string& out_;
  bool comma_ = false;  ///< before what comes next
};

}  // namespace masque
