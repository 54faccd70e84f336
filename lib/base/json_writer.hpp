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

/// What becomes of bidirectional controls, after which a terminal shows text in another order.
enum class JsonControls {
  kEscape,
  kKeep,  ///< in files that must have the bytes of another library's
};

/// Appends `text` (UTF-8) as a JSON string, quotes included. Escaped are `"`, `\`, control
/// characters and, with kEscape, bidirectional controls; nothing else.
void append_json_string(std::string_view text, std::string& out,
                        JsonControls controls = JsonControls::kEscape);

/// The blanks between what is written.
enum class JsonLayout {
  kCompact,  ///< none: {"a":1,"b":[2,3]}
  kSpaced,   ///< after commas and colons: {"a": 1, "b": [2, 3]}
  kLines,    ///< spaced, and a line for each member of an object, but for objects in arrays
};

/// Appends JSON to a text, with the commas and colons that it needs. What it writes is JSON if
/// begin and end calls fit and every key has one value; none of that is checked.
class JsonWriter {
 public:
  /// `out` outlives the writer, and may get other text in between.
  explicit JsonWriter(std::string& out, JsonLayout layout = JsonLayout::kCompact,
                      JsonControls controls = JsonControls::kEscape)
      : out_(out), layout_(layout), controls_(controls) {}

  JsonWriter& begin_object() { return open('{', true); }
  JsonWriter& end_object() { return close('}', true); }
  JsonWriter& begin_array() { return open('[', false); }
  JsonWriter& end_array() { return close(']', false); }

  /// The name of a member; its value is what comes next.
  JsonWriter& key(std::string_view name);
  /// The name of a member as the caller has spelled it, quotes included.
  JsonWriter& raw_key(std::string_view json);

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
  JsonWriter& value(std::nullptr_t) { return null(); }
  /// null for nothing.
  template <class T>
  JsonWriter& value(const std::optional<T>& its_value) {
    return its_value ? value(*its_value) : null();
  }
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

/// The text that `write` gives a JsonWriter.
template <std::invocable<JsonWriter&> Write>
std::string json_text(const Write& write, JsonLayout layout = JsonLayout::kCompact) {
  std::string out;
  JsonWriter json(out, layout);
  write(json);
  return out;
}

/// An array of values as a text.
template <class List>
std::string json_array(const List& items, JsonLayout layout = JsonLayout::kCompact) {
  return json_text([&](JsonWriter& json) { json.array(items); }, layout);
}

}  // namespace masque
