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

enum class JsonKind { kNull, kBool, kNumber, kString, kArray, kObject };

/// Why a text was refused, and at which byte.
struct JsonError {
  std::string message;
  std::size_t offset = 0;
  bool bad_utf8 = false;
  bool duplicate_key = false;
};

/// Receives the events of scan_json. Offsets count bytes from the start of the text. A function
/// that returns false stops the scan; the handler keeps its own reason.
class JsonHandler {
 public:
  virtual ~JsonHandler() = default;
  /// null, a bool or a number; `text` is its spelling.
  virtual bool scalar(JsonKind kind, std::string_view text, std::size_t begin) = 0;
  /// A string, unescaped; may be moved from. `end` is one past the closing quote.
  virtual bool string(std::string& value, std::size_t begin, std::size_t end) = 0;
  virtual bool key(std::string& name, std::size_t begin) = 0;
  virtual bool begin(JsonKind kind, std::size_t begin) = 0;
  virtual bool end(JsonKind kind, std::size_t end) = 0;
};

/// Scans RFC 8259 text and nothing else: valid UTF-8, no byte-order mark, no lone surrogates, no
/// duplicate keys (compared unescaped), nothing after the value but white space, nesting at most
/// `max_depth`. Returns nothing if the text is good or the handler stopped. Cost O(n log n) at
/// most, memory O(depth + keys of the open objects).
std::optional<JsonError> scan_json(std::string_view text, int max_depth, JsonHandler& handler);

/// A place in a document: keys and indexes from the root.
struct JsonStep {
  bool in_object = false;
  std::string key;        ///< of an object's member
  std::size_t index = 0;  ///< of the member or item
};

/// Called for every string, number, bool, null and empty array or object with its place; `text` is
/// the string unescaped or the spelling (nothing of an empty one). Returning false stops the scan.
using JsonLeafFunction = std::function<bool(const std::vector<JsonStep>& path, JsonKind kind,
                                            const std::string& text, std::size_t begin)>;

/// Scans a document leaf by leaf, without building it: memory for one path. Depth at most 64.
std::optional<JsonError> scan_json_leaves(std::string_view text, const JsonLeafFunction& leaf);

struct JsonMember;

/// A value of a document, with its place in the text.
struct JsonValue {
  JsonKind kind = JsonKind::kNull;
  std::size_t begin = 0;  ///< first byte
  std::size_t end = 0;    ///< one past the last byte
  std::string text;       ///< the string unescaped; the spelling of a number, bool or null
  std::vector<JsonMember> members;
  std::vector<JsonValue> items;

  bool is(JsonKind other) const { return kind == other; }
  /// The member called `name`; nullptr if there is none or this is no object. Cost O(members).
  const JsonValue* find(std::string_view name) const;
  /// The text of the member called `name`; empty if there is none, or it is no string.
  std::string text_of(std::string_view name) const;
  /// The number as an unsigned integer, if it is spelled as one (0|[1-9][0-9]*) and fits.
  std::optional<std::uint64_t> integer() const;
  /// The number, in any spelling.
  std::optional<double> number() const;
};

struct JsonMember {
  std::string name;
  std::size_t begin = 0;  ///< of the key's opening quote
  JsonValue value;
};

/// 0|[1-9][0-9]* that fits 64 bits.
std::optional<std::uint64_t> parse_unsigned(std::string_view text);

/// Reads a whole document; depth at most 64.
std::variant<JsonValue, JsonError> read_json(std::string_view text);

/// Reads a document of which `path` is the file. Throws InputError "path: byte N: …".
JsonValue parse_json_file(std::string_view text, const std::string& path);

/// `text` with the member at `path` (keys from the root) set to the JSON text `value`. An existing
/// value is replaced; a missing last key is added after the last member, spaced as that one is.
/// Every other byte stays. Throws InputError if the text is no JSON or a key on the way is missing.
std::string set_json_member(const std::string& text, const std::vector<std::string>& path,
                            std::string_view value);

/// `text` without the member at `path`, its comma and the space between. A member that is not there
/// is none the less gone. Every other byte stays. Throws InputError if the text is no JSON.
std::string erase_json_member(const std::string& text, const std::vector<std::string>& path);

/// A string as JSON, quotes included: only `"`, `\` and control characters are escaped.
std::string quote_json(std::string_view text);

}  // namespace masque
