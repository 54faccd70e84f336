#include "base/json/json_text.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/json/json.hpp"
#include "base/string/split.hpp"
#include "base/string/text_encoding.hpp"
#include "base/string/utf8.hpp"

namespace masque {

namespace {

constexpr std::string_view kJsonBlanks = " \t\r\n";
constexpr std::size_t kMostLines = 64;
constexpr std::size_t kMostText = 1 << 20;
constexpr int kDeepestJson = 64;

/// What may come before JSON: a record separator (RFC 7464), a no-break space, a byte-order
/// mark after another one.
constexpr std::array<std::string_view, 3> kJsonFronts{"\x1E", "\xC2\xA0", kUtf8Mark};

/// How much of a value there is, and where it ends.
class OuterValue final : public JsonHandler {
 public:
  /// Whether an array has objects and strings only, as a corpus has.
  bool good = true;
  std::size_t parts = 0;            ///< whole members or items
  std::optional<std::size_t> end_;  ///< one past its closing bracket

  bool scalar(JsonKind kind, std::string_view /*text*/, std::size_t /*begin*/) override {
    return part(kind);
  }
  bool string(std::string& /*value*/, std::size_t /*begin*/, std::size_t /*end*/) override {
    return part(JsonKind::kString);
  }
  bool key(std::string& /*name*/, std::size_t /*begin*/) override { return true; }
  bool begin(JsonKind /*kind*/, std::size_t /*begin*/) override {
    ++depth_;
    return true;
  }
  bool end(JsonKind kind, std::size_t end) override {
    --depth_;
    if (depth_ > 0) return part(kind);
    end_ = end;
    return false;
  }

 private:
  bool part(JsonKind kind) {
    if (depth_ != 1) return true;
    ++parts;
    good = good && (kind == JsonKind::kObject || kind == JsonKind::kString);
    return true;
  }

  int depth_ = 0;
};

/// `line` without blanks and what else may come before JSON.
std::string_view without_front(std::string_view line) {
  while (true) {
    line = trim(line, kJsonBlanks);
    const auto front = std::ranges::find_if(
        kJsonFronts, [&](std::string_view one) { return line.starts_with(one); });
    if (front == kJsonFronts.end()) return line;
    line.remove_prefix(front->size());
  }
}

/// Whether `text` begins with a brace, a quoted key and a colon.
bool begins_with_member(std::string_view text) {
  const auto skip_blanks = [&] {
    text.remove_prefix(std::min(text.find_first_not_of(kJsonBlanks), text.size()));
  };
  if (!text.starts_with('{')) return false;
  text.remove_prefix(1);
  skip_blanks();
  if (!text.starts_with('"')) return false;
  std::size_t end = 1;
  while (end < text.size() && text[end] != '"') end += text[end] == '\\' ? 2U : 1U;
  if (end >= text.size()) return false;
  text.remove_prefix(end + 1);
  skip_blanks();
  return text.starts_with(':');
}

/// Whether `line` is a JSON object with a member, and nothing else.
bool is_whole_record(std::string_view line) {
  OuterValue value;
  line = without_front(line);
  return begins_with_member(line) && !scan_json(line, kDeepestJson, value) && value.end_ &&
         *value.end_ == line.size();
}

/// Calls use(place) with the place of each "\uXXXX" in `json` that is half a character.
template <class Use>
void each_lone_surrogate(std::string_view json, const Use& use) {
  const auto unit_at = [&](std::size_t at) -> unsigned {
    if (at + 6 > json.size() || json[at] != '\\' || json[at + 1] != 'u') return 0;
    unsigned unit = 0;
    for (std::size_t i = at + 2; i < at + 6; ++i) {
      const char c = json[i];
      const unsigned digit = c >= '0' && c <= '9'   ? static_cast<unsigned>(c - '0')
                             : c >= 'a' && c <= 'f' ? static_cast<unsigned>(c - 'a' + 10)
                             : c >= 'A' && c <= 'F' ? static_cast<unsigned>(c - 'A' + 10)
                                                    : 16;
      if (digit == 16) return 0;
      unit = unit * 16 + digit;
    }
    return unit;
  };
  std::size_t at = json.find('\\');
  while (at != std::string_view::npos) {
    const unsigned unit = unit_at(at);
    const bool high = unit >= 0xD800 && unit < 0xDC00, low = unit >= 0xDC00 && unit < 0xE000;
    const unsigned next = high ? unit_at(at + 6) : 0;
    const bool whole = high && next >= 0xDC00 && next < 0xE000;
    if ((high || low) && !whole) use(at);
    at = json.find('\\', at + (whole ? 12 : unit != 0 ? 6 : 2));
  }
}

}  // namespace

void JsonDetector::start_again() {
  text_.clear();
  lines_ = 0;
}

void JsonDetector::look(bool last) {
  std::string text;
  append_replacing_invalid(text_, text);
  replace_lone_surrogates(text);
  OuterValue value;
  const std::optional<JsonError> error = scan_json(text, kDeepestJson, value);
  const bool array = text.front() == '[';
  const bool member = begins_with_member(text);
  bool json = member || (error && error->duplicate_key);
  bool cut_off = false;
  if (value.end_) {
    // Several objects of a line have nothing between them; what else follows is a sentence.
    const std::string_view rest = trim(std::string_view(text).substr(*value.end_), kJsonBlanks);
    const bool alone = rest.empty() || rest == ",";
    // An object without members says nothing yet: a record or a text may follow.
    if (alone && !array && value.parts == 0) return start_again();
    // One line of numbers in brackets is a line of text.
    const bool records = !array || lines_ > 1 || (value.good && value.parts > 0);
    json = (alone && records) || (member && !rest.empty() && rest.front() == '{');
  } else if (error && error->offset >= text.size()) {
    cut_off = true;
    if (array) json = value.parts > 0 && (value.good || last);
    if (!json && !last) return;
  }
  decided_ = true;
  if (!json) return;
  kind_ = array ? kJsonArray : lines_ == 1 && !cut_off ? "JSON lines" : "a JSON object";
}

bool JsonDetector::add(std::string_view lines) {
  while (!decided_ && !lines.empty()) {
    const std::size_t feed = lines.find('\n');
    const std::string_view line = lines.substr(0, feed == std::string_view::npos ? feed : feed + 1);
    lines.remove_prefix(line.size());
    if (rest_of_record_) {
      decided_ = true;
      if (is_whole_record(line)) kind_ = "JSON lines";
      break;
    }
    if (text_.empty()) {
      const std::string_view begin = without_front(line);
      if (begin.empty() || begin == "null") continue;
      if (begin.front() != '{' && begin.front() != '[') {
        rest_of_record_ = begin.back() == '}';
        decided_ = !rest_of_record_;
        continue;
      }
      text_ = line.substr(static_cast<std::size_t>(begin.data() - line.data()));
    } else {
      text_ += line;
    }
    ++lines_;
    look(lines_ >= kMostLines || text_.size() > kMostText);
  }
  if (decided_) text_ = {};
  return !kind_.empty();
}

void refuse_json(std::string_view text, const std::string& name, std::string_view advice) {
  JsonDetector detector;
  if (!detector.add(text)) return;
  throw InputError(name, fmt::format("{}, expected a text{}{}", detector.kind(),
                                     advice.empty() ? "" : ": ", advice));
}

std::uint64_t replace_lone_surrogates(std::string& json) {
  std::uint64_t count = 0;
  each_lone_surrogate(json, [&](std::size_t at) {
    json.replace(at + 2, 4, "fffd");
    ++count;
  });
  return count;
}

bool has_lone_surrogates(std::string_view json) {
  bool found = false;
  each_lone_surrogate(json, [&](std::size_t) { found = true; });
  return found;
}

std::optional<std::string> read_json_text(std::string_view line, std::string_view field,
                                          std::string& text, std::uint64_t& surrogates) {
  std::string copy;
  if (has_lone_surrogates(line)) {
    copy = line;
    surrogates += replace_lone_surrogates(copy);
    line = copy;
  }
  auto parsed = read_json(line);
  if (const auto* error = std::get_if<JsonError>(&parsed))
    return fmt::format("byte {}: {}, expected a JSON object with the field '{}'", error->offset,
                       error->message, escape(field));
  const auto& root = std::get<JsonValue>(parsed);
  const JsonValue* value = root.find(field);
  if (value == nullptr)
    return fmt::format("no field '{}', expected a JSON object with it", escape(field));
  if (!value->is(JsonKind::kString))
    return fmt::format("field '{}' is not a string, expected a text", escape(field));
  text = value->text;
  return std::nullopt;
}

}  // namespace masque
