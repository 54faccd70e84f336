#include "base/json_text.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/json.hpp"
#include "base/split.hpp"
#include "base/utf8.hpp"

namespace masque {

namespace {

constexpr std::string_view kJsonBlanks = " \t\r\n";
constexpr std::size_t kMostLines = 64;
constexpr std::size_t kMostText = 1 << 20;
constexpr int kDeepestJson = 64;

/// Whether a value is one that a corpus is made of, and where it ends.
class OuterValue final : public JsonHandler {
 public:
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
  bool begin(JsonKind kind, std::size_t /*begin*/) override {
    if (depth_ == 0) outer_ = kind;
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
    good = good &&
           (outer_ == JsonKind::kObject || kind == JsonKind::kObject || kind == JsonKind::kString);
    return good;
  }

  int depth_ = 0;
  JsonKind outer_ = JsonKind::kNull;
};

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

void JsonDetector::look() {
  std::string text;
  append_replacing_invalid(text_, text);
  replace_lone_surrogates(text);
  OuterValue value;
  const std::optional<JsonError> error = scan_json(text, kDeepestJson, value);
  const bool some = value.good && value.parts > 0;
  const bool cut_off = error && error->offset >= text.size();
  if (cut_off && value.good && value.parts == 0) return;  // "[" or "{" alone
  decided_ = true;
  const bool twice = error && error->duplicate_key;
  bool json = some && (cut_off || twice);
  if (value.end_) {
    const std::string_view rest = trim(std::string_view(text).substr(*value.end_), kJsonBlanks);
    json = some && (rest.empty() || rest == ",");
  }
  if (!json) return;
  const bool array = text.front() == '[';
  kind_ = array ? kJsonArray : lines_ == 1 && !cut_off ? "JSON lines" : "a JSON object";
}

bool JsonDetector::add(std::string_view lines) {
  while (!decided_ && !lines.empty()) {
    const std::size_t feed = lines.find('\n');
    const std::string_view line = lines.substr(0, feed == std::string_view::npos ? feed : feed + 1);
    lines.remove_prefix(line.size());
    if (text_.empty()) {
      const std::size_t first = line.find_first_not_of(kJsonBlanks);
      if (first == std::string_view::npos) continue;
      if (line[first] != '{' && line[first] != '[') {
        decided_ = true;
        break;
      }
      text_ = line.substr(first);
    } else {
      text_ += line;
    }
    ++lines_;
    look();
    if (lines_ >= kMostLines || text_.size() > kMostText) decided_ = true;
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
