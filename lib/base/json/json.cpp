// The syntax is nlohmann-json's (strict, UTF-8 checked, no recursion). On top: positions, duplicate
// keys, byte-order mark, NUL and depth, which it lets pass.
#include "base/json/json.hpp"

#include <xxhash.h>

#include <algorithm>
#include <iterator>
#include <span>
#include <tuple>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/json/json_writer.hpp"
#include "base/string/parse_number.hpp"

namespace masque {

namespace {

/// Iterates over the text and tells how far the parser has read: it copies its iterators, so the
/// position is kept outside.
class Cursor {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  Cursor(const char* at, const char** reached) : at_(at), reached_(reached) {}
  reference operator*() const { return *at_; }
  Cursor& operator++() {
    *reached_ = ++at_;
    return *this;
  }
  Cursor operator++(int) {
    const Cursor before = *this;
    ++*this;
    return before;
  }
  bool operator==(const Cursor& other) const { return at_ == other.at_; }
  bool operator!=(const Cursor& other) const { return at_ != other.at_; }

 private:
  const char* at_;
  const char** reached_;
};

/// A key of an open object, by the hash of its unescaped text: no copies of a million names. Two
/// names with one XXH3-128 hash count as equal, so that at worst a crafted file is refused.
struct Key {
  XXH128_hash_t hash;
  std::size_t begin;
};

/// The second of two equal keys, if any; sorts them.
const Key* duplicate_of(std::span<Key> keys) {
  const auto same = [](const Key& a, const Key& b) {
    return a.hash.low64 == b.hash.low64 && a.hash.high64 == b.hash.high64;
  };
  if (keys.size() <= 8) {
    for (std::size_t i = 1; i < keys.size(); ++i) {
      for (std::size_t j = 0; j < i; ++j) {
        if (same(keys[i], keys[j])) return &keys[i];
      }
    }
    return nullptr;
  }
  std::sort(keys.begin(), keys.end(), [&](const Key& a, const Key& b) {
    return std::tie(a.hash.high64, a.hash.low64, a.begin) <
           std::tie(b.hash.high64, b.hash.low64, b.begin);
  });
  const auto found = std::adjacent_find(keys.begin(), keys.end(), same);
  return found == keys.end() ? nullptr : &*(found + 1);
}

class Adapter final : public nlohmann::json_sax<nlohmann::json> {
 public:
  Adapter(std::string_view text, const char** reached, int max_depth, JsonHandler& handler)
      : text_(text), reached_(reached), max_depth_(max_depth), handler_(handler) {}

  std::optional<JsonError> error;

  bool null() override { return scalar(JsonKind::kNull); }
  bool boolean(bool /*value*/) override { return scalar(JsonKind::kBool); }
  bool number_integer(number_integer_t /*value*/) override { return number(); }
  bool number_unsigned(number_unsigned_t /*value*/) override { return number(); }
  bool number_float(number_float_t /*value*/, const string_t& /*text*/) override {
    return number();
  }
  bool binary(binary_t& /*value*/) override { return false; }
  bool string(string_t& value) override {
    const std::size_t begin = token_begin();
    return handler_.string(value, begin, position_ = reached());
  }
  bool key(string_t& name) override {
    const std::size_t begin = token_begin();
    position_ = reached();
    keys_.push_back({XXH3_128bits(name.data(), name.size()), begin});
    return handler_.key(name, begin);
  }
  bool start_object(std::size_t /*elements*/) override { return start(JsonKind::kObject); }
  bool start_array(std::size_t /*elements*/) override { return start(JsonKind::kArray); }
  bool end_object() override {
    if (const Key* again = duplicate_of(std::span(keys_).subspan(open_.back()))) {
      error = {fmt::format("the key {} occurs twice", escape(key_text(again->begin))), again->begin,
               false, true};
      return false;
    }
    return finish(JsonKind::kObject);
  }
  bool end_array() override { return finish(JsonKind::kArray); }
  bool parse_error(std::size_t position, const std::string& /*token*/,
                   const nlohmann::detail::exception& reason) override {
    const std::string what = reason.what();
    error =
        JsonError{.message = what.find("ill-formed UTF-8") != std::string::npos ? "not valid UTF-8"
                                                                                : "not valid JSON",
                  .offset = position == 0 ? 0 : position - 1,
                  .bad_utf8 = what.find("ill-formed UTF-8") != std::string::npos};
    return false;
  }

 private:
  std::size_t reached() const { return static_cast<std::size_t>(*reached_ - text_.data()); }

  /// First byte of the token that was just read: after the last one, white space and separators.
  std::size_t token_begin() const {
    return std::min(text_.find_first_not_of(" \t\r\n,:", position_), text_.size());
  }

  bool scalar(JsonKind kind) {
    const std::size_t begin = token_begin();
    position_ = reached();
    return handler_.scalar(kind, text_.substr(begin, position_ - begin), begin);
  }

  // A number ends where its characters end: the parser has read one byte further.
  bool number() {
    const std::size_t begin = token_begin();
    position_ = std::min(text_.find_first_not_of("0123456789+-.eE", begin), text_.size());
    return handler_.scalar(JsonKind::kNumber, text_.substr(begin, position_ - begin), begin);
  }

  /// A key as it is spelled, quotes included.
  std::string_view key_text(std::size_t begin) const {
    std::size_t end = begin + 1;
    while (text_[end] != '"') end += text_[end] == '\\' ? 2U : 1U;
    return text_.substr(begin, end + 1 - begin);
  }

  bool start(JsonKind kind) {
    position_ = reached();
    if (static_cast<int>(open_.size()) >= max_depth_) {
      error = JsonError{fmt::format("nested deeper than {} levels", max_depth_), position_ - 1};
      return false;
    }
    open_.push_back(keys_.size());
    return handler_.begin(kind, position_ - 1);
  }

  bool finish(JsonKind kind) {
    keys_.erase(keys_.begin() + static_cast<std::ptrdiff_t>(open_.back()), keys_.end());
    open_.pop_back();
    position_ = reached();
    return handler_.end(kind, position_);
  }

  std::string_view text_;
  const char** reached_;
  int max_depth_;
  JsonHandler& handler_;
  std::size_t position_ = 0;
  std::vector<Key> keys_;          // of all open objects, outermost first
  std::vector<std::size_t> open_;  // where the keys of each open value begin
};

/// Builds a document.
class Builder final : public JsonHandler {
 public:
  JsonValue root;

  bool scalar(JsonKind kind, std::string_view text, std::size_t begin) override {
    JsonValue& value = place();
    value.kind = kind;
    value.begin = begin;
    value.end = begin + text.size();
    value.text = text;
    return true;
  }
  bool string(std::string& text, std::size_t begin, std::size_t end) override {
    JsonValue& value = place();
    value.kind = JsonKind::kString;
    value.begin = begin;
    value.end = end;
    value.text = std::move(text);
    return true;
  }
  bool key(std::string& name, std::size_t begin) override {
    open_.back()->members.push_back({std::move(name), begin, {}});
    return true;
  }
  bool begin(JsonKind kind, std::size_t begin) override {
    JsonValue& value = place();
    value.kind = kind;
    value.begin = begin;
    open_.push_back(&value);  // stays valid: only the innermost open value's lists grow
    return true;
  }
  bool end(JsonKind /*kind*/, std::size_t end) override {
    open_.back()->end = end;
    open_.pop_back();
    return true;
  }

 private:
  JsonValue& place() {
    if (open_.empty()) return root;
    JsonValue& parent = *open_.back();
    if (parent.kind == JsonKind::kObject) return parent.members.back().value;
    return parent.items.emplace_back();
  }

  std::vector<JsonValue*> open_;
};

/// Follows the place and hands on the leaves.
class LeafHandler final : public JsonHandler {
 public:
  explicit LeafHandler(const JsonLeafFunction& leaf) : leaf_(leaf) {}

  bool scalar(JsonKind kind, std::string_view text, std::size_t begin) override {
    return visit(kind, std::string(text), begin);
  }
  bool string(std::string& value, std::size_t begin, std::size_t /*end*/) override {
    return visit(JsonKind::kString, value, begin);
  }
  bool key(std::string& name, std::size_t /*begin*/) override {
    path_.back().key = std::move(name);
    return true;
  }
  bool begin(JsonKind kind, std::size_t begin) override {
    path_.emplace_back().in_object = kind == JsonKind::kObject;
    begin_ = begin;
    return true;
  }
  bool end(JsonKind kind, std::size_t /*end*/) override {
    const bool empty = path_.back().index == 0;
    path_.pop_back();
    if (empty) return visit(kind, {}, begin_);
    next();
    return true;
  }

 private:
  bool visit(JsonKind kind, const std::string& text, std::size_t begin) {
    const bool go_on = leaf_(path_, kind, text, begin);
    next();
    return go_on;
  }
  void next() {
    if (!path_.empty()) ++path_.back().index;
  }

  const JsonLeafFunction& leaf_;
  std::vector<JsonStep> path_;
  std::size_t begin_ = 0;  ///< of the innermost array or object that began last
};

}  // namespace

std::optional<JsonError> scan_json_leaves(std::string_view text, const JsonLeafFunction& leaf) {
  LeafHandler handler(leaf);
  return scan_json(text, 64, handler);
}

std::optional<JsonError> scan_json(std::string_view text, int max_depth, JsonHandler& handler) {
  if (text.starts_with("\xEF\xBB\xBF")) return JsonError{"starts with a byte-order mark", 0};
  const char* reached = text.data();
  Adapter adapter(text, &reached, max_depth, handler);
  const bool accepted = nlohmann::json::sax_parse(
      Cursor(text.data(), &reached), Cursor(text.data() + text.size(), &reached), &adapter);
  // To nlohmann-json a NUL after the value is the end of the text.
  const std::size_t nul = accepted ? text.find('\0') : std::string_view::npos;
  if (nul != std::string_view::npos) return JsonError{"not valid JSON", nul};
  return adapter.error;
}

const JsonValue* JsonValue::find(std::string_view name) const {
  const auto found = std::find_if(members.begin(), members.end(),
                                  [&](const JsonMember& member) { return member.name == name; });
  return found == members.end() ? nullptr : &found->value;
}

std::optional<std::uint64_t> parse_unsigned(std::string_view text) {
  if (text.empty() || (text.size() > 1 && text[0] == '0')) return std::nullopt;
  return parse_number<std::uint64_t>(text);
}

std::string JsonValue::text_of(std::string_view name) const {
  const JsonValue* value = find(name);
  return value != nullptr && value->is(JsonKind::kString) ? value->text : std::string();
}

std::optional<std::uint64_t> JsonValue::integer() const {
  return kind == JsonKind::kNumber ? parse_unsigned(text) : std::nullopt;
}

std::optional<double> JsonValue::number() const {
  return kind == JsonKind::kNumber ? parse_number<double>(text) : std::nullopt;
}

std::variant<JsonValue, JsonError> read_json(std::string_view text) {
  Builder builder;
  if (auto error = scan_json(text, 64, builder)) return *std::move(error);
  return std::move(builder.root);
}

JsonValue parse_json_file(std::string_view text, const std::string& path) {
  auto result = read_json(text);
  if (const auto* error = std::get_if<JsonError>(&result)) {
    throw InputError(path, fmt::format("byte {}: {}", error->offset, error->message));
  }
  return std::get<JsonValue>(std::move(result));
}

std::string quote_json(std::string_view text) {
  std::string out;
  out.reserve(text.size() + 2);
  append_json_string(text, out);
  return out;
}

// Edits of JSON texts: every byte that no edit names stays. New members are spaced as their
// neighbours are, which a JsonWriter does not know.

std::string set_json_member(const std::string& text, const std::vector<std::string>& path,
                            std::string_view value) {
  const JsonValue root = parse_json_file(text, "JSON document");
  const JsonValue* at = &root;
  for (std::size_t i = 0; i < path.size(); ++i) {
    const JsonValue* next = at->find(path[i]);
    if (next != nullptr) {
      at = next;
      continue;
    }
    if (i + 1 != path.size() || !at->is(JsonKind::kObject)) {
      throw InputError("JSON document", fmt::format("no member \"{}\" found", escape(path[i])));
    }
    const std::string name = quote_json(path[i]);
    if (at->members.empty()) {
      return fmt::format("{}{}: {}{}", text.substr(0, at->begin + 1), name, value,
                         text.substr(at->begin + 1));
    }
    // Spaced like the last member: what stands before its key, and between its key and its value.
    const JsonMember& last = at->members.back();
    const std::size_t before =
        at->members.size() == 1 ? at->begin + 1
                                : text.find(',', at->members[at->members.size() - 2].value.end) + 1;
    const std::size_t colon = text.rfind(':', last.value.begin);
    std::size_t key_end = colon;
    while (text[key_end - 1] != '"') --key_end;
    return fmt::format(
        "{},{}{}{}{}{}", text.substr(0, last.value.end), text.substr(before, last.begin - before),
        name, text.substr(key_end, last.value.begin - key_end), value, text.substr(last.value.end));
  }
  return fmt::format("{}{}{}", text.substr(0, at->begin), value, text.substr(at->end));
}

std::string erase_json_member(const std::string& text, const std::vector<std::string>& path) {
  MASQUE_CHECK(!path.empty());
  const JsonValue root = parse_json_file(text, "JSON document");
  const JsonValue* at = &root;
  for (std::size_t i = 0; i + 1 < path.size(); ++i) {
    at = at->find(path[i]);
    if (at == nullptr) return text;
  }
  const JsonValue* value = at->find(path.back());
  if (value == nullptr) return text;
  const std::vector<JsonMember>& members = at->members;
  std::size_t i = 0;
  while (&members[i].value != value) ++i;
  // With the comma before it, or the one after it where it is the first.
  if (i > 0) {
    return text.substr(0, members[i - 1].value.end) + text.substr(members[i].value.end);
  }
  if (members.size() == 1) return text.substr(0, at->begin + 1) + text.substr(at->end - 1);
  return text.substr(0, members[0].begin) + text.substr(members[1].begin);
}

}  // namespace masque
