// Strict JSON with byte positions, and edits that change only the bytes that must change.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace masque {

/// The kind of a JSON value.
enum class JsonKind { kNull, kBool, kNumber, kString, kArray, kObject };

/// Why a text was refused, and at which byte.
struct JsonError {
  std::string message;         ///< one line, safe to print: "not valid JSON"
  std::size_t offset = 0;      ///< byte of the text, from 0
  bool bad_utf8 = false;       ///< the text is not UTF-8 there
  bool duplicate_key = false;  ///< the key that begins there is the second one of its name
};

/// Receives the events of scan_json. Offsets count bytes from the start of the text. A function
/// that returns false stops the scan; the handler keeps its own reason.
class JsonHandler {
 public:
  virtual ~JsonHandler() = default;
  /// A null, a bool or a number, as `kind` says; `text` is its spelling, a view of the scanned
  /// text, and begins at `begin`.
  virtual bool scalar(JsonKind kind, std::string_view text, std::size_t begin) = 0;
  /// A string that is a value, unescaped: `value` may be moved from. `begin` is its opening quote,
  /// `end` one past the closing quote.
  virtual bool string(std::string& value, std::size_t begin, std::size_t end) = 0;
  /// The key of a member, unescaped: `name` may be moved from. `begin` is its opening quote. Its
  /// value comes next. A duplicate key is found at the end of its object, after the events of both.
  virtual bool key(std::string& name, std::size_t begin) = 0;
  /// The opening bracket, at `begin`, of an array or object, as `kind` says.
  virtual bool begin(JsonKind kind, std::size_t begin) = 0;
  /// The end of the innermost open array or object, as `kind` says; `end` is one past its closing
  /// bracket.
  virtual bool end(JsonKind kind, std::size_t end) = 0;
};

/// Scans `text`, as RFC 8259 says and nothing else, and calls `handler`: valid UTF-8, no byte-order
/// mark, no lone surrogates, no duplicate keys (compared unescaped), nothing after the value but
/// white space, nesting at most `max_depth`. Returns nothing if the text is good or the handler
/// stopped. Cost O(n log n) at most, memory O(depth + keys of the open objects).
std::optional<JsonError> scan_json(std::string_view text, int max_depth, JsonHandler& handler);

/// A step from an array or object to a value in it; a path of them leads from the root to a place.
struct JsonStep {
  bool in_object = false;  ///< whether the step is into an object, else into an array
  std::string key;         ///< of an object's member
  std::size_t index = 0;   ///< of the member or item
};

/// Called for every string, number, bool, null and empty array or object with its place; `text` is
/// the string unescaped or the spelling (nothing of an empty one). Returning false stops the scan.
using JsonLeafFunction = std::function<bool(const std::vector<JsonStep>& path, JsonKind kind,
                                            const std::string& text, std::size_t begin)>;

/// Scans the document `text` as scan_json does and calls `leaf` for each leaf, without building the
/// document: memory for one path and the keys of its objects. Depth at most 64.
std::optional<JsonError> scan_json_leaves(std::string_view text, const JsonLeafFunction& leaf);

struct JsonMember;

/// A value of a document, with its place in the text.
struct JsonValue {
  JsonKind kind = JsonKind::kNull;  ///< decides which of the other fields are set
  std::size_t begin = 0;            ///< first byte
  std::size_t end = 0;              ///< one past the last byte
  std::string text;  ///< the string unescaped; the spelling of a number, bool or null
  std::vector<JsonMember> members;  ///< of an object, in the order of the text
  std::vector<JsonValue> items;     ///< of an array

  /// Whether the value is of the kind `other`.
  bool is(JsonKind other) const { return kind == other; }
  /// The value of the member called `name`, which lives as long as this one; nullptr if there is
  /// none or this is no object. Cost O(members).
  const JsonValue* find(std::string_view name) const;
  /// The string that is the member called `name`, unescaped; empty if there is none, or it is no
  /// string.
  std::string text_of(std::string_view name) const;
  /// The number as an unsigned integer, if it is spelled as one (0|[1-9][0-9]*) and fits.
  std::optional<std::uint64_t> integer() const;
  /// The number, in any spelling; nothing if this is none or it is beyond the range of double.
  std::optional<double> number() const;
};

/// A member of an object.
struct JsonMember {
  std::string name;       ///< the key, unescaped
  std::size_t begin = 0;  ///< of the key's opening quote
  JsonValue value;        ///< its range is without the key
};

/// The number that the whole of `text` spells, 0|[1-9][0-9]*; nothing for any other text and for a
/// number that does not fit 64 bits.
std::optional<std::uint64_t> parse_unsigned(std::string_view text);

/// Reads the whole document `text`, as strictly as scan_json; depth at most 64.
std::variant<JsonValue, JsonError> read_json(std::string_view text);

/// Reads the document `text`, as read_json, of which `path` is the file. Throws InputError
/// "PATH: byte N: …".
JsonValue parse_json_file(std::string_view text, const std::string& path);

/// Returns `text` with the member at `path` (keys from the root) set to the JSON text `value`,
/// which is not checked. An existing value is replaced; a missing last key is added after the last
/// member, spaced as that one is. Every other byte stays. Throws InputError if the text is no JSON
/// or a key on the way is missing.
std::string set_json_member(const std::string& text, const std::vector<std::string>& path,
                            std::string_view value);

/// Returns `text` without the member at `path` (keys from the root, at least one), its comma and
/// the space between. A missing member is no error. Every other byte stays.
/// Throws InputError if the text is no JSON.
std::string erase_json_member(const std::string& text, const std::vector<std::string>& path);

/// Returns `text` (UTF-8) as a JSON string, quotes included, as append_json_string writes it: `"`,
/// `\`, control characters below U+0020 and bidirectional controls are escaped.
std::string quote_json(std::string_view text);

}  // namespace masque
