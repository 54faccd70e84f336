#include "base/json/json_writer.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>

#include <fmt/format.h>

#include "base/escape.hpp"
#include "base/string/decimal.hpp"

namespace masque {

namespace {

/// Of the characters with these first bytes a few are hidden ones beyond JSON's own.
bool may_hide(char c) {
  return c == '\xE2' || c == '\xC2' || c == '\xD8' || c == '\xEF' || c == '\x7F';
}

bool needs_escape(char c) {
  return c == '"' || c == '\\' || static_cast<unsigned char>(c) < 0x20 || may_hide(c);
}

}  // namespace

void append_json_string(std::string_view text, std::string& out, JsonControls controls) {
  out += '"';
  std::size_t done = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (!needs_escape(text[i])) continue;
    char32_t code_point = static_cast<unsigned char>(text[i]);
    int length = 1;
    if (may_hide(text[i])) {
      if (controls == JsonControls::kKeep) continue;
      length = decode_utf8(text.substr(i), code_point);
      if (length == 0 || !is_hidden_character(code_point)) continue;
    }
    out += text.substr(done, i - done);
    done = i + static_cast<std::size_t>(length);
    switch (text[i]) {
      case '"': out += "\\\""; break;
      case '\\': out += "\\\\"; break;
      case '\b': out += "\\b"; break;
      case '\f': out += "\\f"; break;
      case '\n': out += "\\n"; break;
      case '\r': out += "\\r"; break;
      case '\t': out += "\\t"; break;
      default:
        fmt::format_to(std::back_inserter(out), "\\u{:04x}", static_cast<unsigned>(code_point));
    }
    i = done - 1;
  }
  out += text.substr(done);
  out += '"';
}

void JsonWriter::begin_line() {
  out_ += '\n';
  out_.append(2 * objects_, ' ');
}

void JsonWriter::begin_key() {
  if (layout_ != JsonLayout::kLines || arrays_ > 0) return separate();
  if (comma_) out_ += ',';
  begin_line();
}

void JsonWriter::end_key() {
  out_ += layout_ == JsonLayout::kCompact ? ":" : ": ";
  comma_ = false;
}

JsonWriter& JsonWriter::key(std::string_view name) {
  begin_key();
  append_json_string(name, out_, controls_);
  end_key();
  return *this;
}

JsonWriter& JsonWriter::raw_key(std::string_view json) {
  begin_key();
  out_ += json;
  end_key();
  return *this;
}

JsonWriter& JsonWriter::open(char bracket, bool object) {
  separate();
  out_ += bracket;
  comma_ = false;
  if (!object) ++arrays_;
  if (object && arrays_ == 0) ++objects_;
  return *this;
}

JsonWriter& JsonWriter::close(char bracket, bool object) {
  if (!object) --arrays_;
  if (object && arrays_ == 0) {
    --objects_;
    if (layout_ == JsonLayout::kLines) begin_line();
  }
  out_ += bracket;
  comma_ = true;
  return *this;
}

JsonWriter& JsonWriter::value(std::string_view text) {
  separate();
  append_json_string(text, out_, controls_);
  return *this;
}

JsonWriter& JsonWriter::value(double number) {
  if (!std::isfinite(number)) return null();
  separate();
  fmt::format_to(std::back_inserter(out_), "{}", number);
  return *this;
}

JsonWriter& JsonWriter::raw(std::string_view json) {
  if (json.empty()) return *this;
  separate();
  out_ += json;
  return *this;
}

JsonWriter& JsonWriter::whole(std::int64_t number) {
  separate();
  const fmt::format_int text(number);
  out_.append(text.data(), text.size());
  return *this;
}

JsonWriter& JsonWriter::natural(std::uint64_t number) {
  separate();
  const fmt::format_int text(number);
  out_.append(text.data(), text.size());
  return *this;
}

void JsonWriter::numbers(std::span<const std::int32_t> list) {
  // Through the stack: a string that grows is filled with zeros first.
  constexpr std::size_t kAtOnce = 512;
  std::array<char, kAtOnce*(kDecimalChars + 2)> buffer;  // NOLINT(*-member-init)
  const std::string_view between = layout_ == JsonLayout::kCompact ? "," : ", ";
  for (std::size_t begin = 0; begin < list.size(); begin += kAtOnce) {
    char* at = buffer.data();
    for (std::size_t i = begin; i < std::min(begin + kAtOnce, list.size()); ++i) {
      if (i > 0) at = std::ranges::copy(between, at).out;
      at = write_decimal(list[i], at);
    }
    out_.append(buffer.data(), static_cast<std::size_t>(at - buffer.data()));
  }
}

}  // namespace masque
