// JSON being written, in the order of the calls.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace masque {

/// What becomes of hidden characters (escape.hpp), which a terminal obeys.
enum class JsonControls {
  kEscape,  ///< written as `\uNNNN`
  kKeep,    ///< in files that must have the bytes of another library's
};

/// Appends `text` (UTF-8, which is not checked) to `out` as a JSON string, quotes included. Escaped
/// are `"`, `\`, control characters below U+0020 and, where `controls` is kEscape, all others that
/// is_hidden_character() names; nothing else.
void append_json_string(std::string_view text, std::string& out,
                        JsonControls controls = JsonControls::kEscape);

/// The blanks between what is written.
enum class JsonLayout {
  kCompact,  ///< none: `{"a":1,"b":[2,3]}`
  kSpaced,   ///< after commas and colons: `{"a": 1, "b": [2, 3]}`
  kLines,    ///< spaced, and a line for each member of an object, but for objects in arrays
};

/// Appends JSON to a text, with the commas and colons that it needs. What it writes is JSON if
/// begin and end calls fit and every key has one value; none of that is checked.
class JsonWriter {
 public:
  /// Appends to `out`, which outlives the writer and may get other text in between. `layout` are
  /// the blanks; `controls` is how strings and keys are escaped.
  explicit JsonWriter(std::string& out, JsonLayout layout = JsonLayout::kCompact,
                      JsonControls controls = JsonControls::kEscape)
      : out_(out), layout_(layout), controls_(controls) {}

  /// Begins an object that is a value; its members come next.
  JsonWriter& begin_object() { return open('{', true); }
  /// Ends the innermost open object.
  JsonWriter& end_object() { return close('}', true); }
  /// Begins an array that is a value; its values come next.
  JsonWriter& begin_array() { return open('[', false); }
  /// Ends the innermost open array.
  JsonWriter& end_array() { return close(']', false); }

  /// Writes the key `name` of a member, quoted and escaped; its value is what comes next.
  JsonWriter& key(std::string_view name);
  /// Writes a key as the caller has spelled it in `json`, quotes included.
  JsonWriter& raw_key(std::string_view json);

  /// Writes the string `text`, quoted and escaped.
  JsonWriter& value(std::string_view text);
  /// Writes the string `text`, which ends with a NUL, quoted and escaped.
  JsonWriter& value(const char* text) { return value(std::string_view(text)); }
  /// Writes `truth` as true or false.
  JsonWriter& value(std::same_as<bool> auto truth) { return raw(truth ? "true" : "false"); }
  /// Writes the whole `number` in decimal.
  JsonWriter& value(std::signed_integral auto number) { return whole(std::int64_t{number}); }
  /// Writes the whole `number` in decimal.
  JsonWriter& value(std::unsigned_integral auto number) requires(
      !std::same_as<decltype(number), bool>) {
    return natural(std::uint64_t{number});
  }
  /// Writes `number` in the shortest spelling that is read back the same; null for NaN and
  /// infinity.
  JsonWriter& value(double number);
  /// Writes null.
  JsonWriter& value(std::nullptr_t) { return null(); }
  /// Writes what `its_value` holds; null for nothing.
  template <class T>
  JsonWriter& value(const std::optional<T>& its_value) {
    return its_value ? value(*its_value) : null();
  }
  /// Writes null.
  JsonWriter& null() { return raw("null"); }
  /// Writes a value as the caller has spelled it in `json`, or members with commas between; nothing
  /// if it is empty.
  JsonWriter& raw(std::string_view json);

  /// Writes the key `name` with `its_value`.
  template <class T>
  JsonWriter& member(std::string_view name, const T& its_value) {
    return key(name).value(its_value);
  }
  /// Writes the key `name` with a value as the caller has spelled it in `json`, which is not empty.
  JsonWriter& raw_member(std::string_view name, std::string_view json) {
    return key(name).raw(json);
  }
  /// Writes an array with each of the `items` as value() does.
  template <class List>
  JsonWriter& array(const List& items) {
    begin_array();
    if constexpr (std::convertible_to<const List&, std::span<const std::int32_t>>) {
      numbers(items);
    } else {
      for (const auto& item : items) value(item);
    }
    return end_array();
  }

 private:
  void separate() {
    if (comma_) {
      out_ += ',';
      if (layout_ != JsonLayout::kCompact) out_ += ' ';
    }
    comma_ = true;
  }
  /// Before a key, or the end of an object.
  void begin_line();
  void begin_key();
  void end_key();
  JsonWriter& open(char bracket, bool object);
  JsonWriter& close(char bracket, bool object);
  JsonWriter& whole(std::int64_t number);
  JsonWriter& natural(std::uint64_t number);
  /// Values of an array that has none yet. Training data are millions of them.
  void numbers(std::span<const std::int32_t> list);

  std::string& out_;
  JsonLayout layout_;
  JsonControls controls_;
  bool comma_ = false;       ///< before what comes next
  std::size_t objects_ = 0;  ///< open, outside of arrays
  std::size_t arrays_ = 0;   ///< open
};

/// Returns the text that `write` gives a JsonWriter with this `layout`, bidirectional controls
/// escaped.
template <std::invocable<JsonWriter&> Write>
std::string json_text(const Write& write, JsonLayout layout = JsonLayout::kCompact) {
  std::string out;
  JsonWriter json(out, layout);
  write(json);
  return out;
}

/// Returns an array of the `items` as a text in this `layout`, as JsonWriter::array() writes it.
template <class List>
std::string json_array(const List& items, JsonLayout layout = JsonLayout::kCompact) {
  return json_text([&](JsonWriter& json) { json.array(items); }, layout);
}

}  // namespace masque
