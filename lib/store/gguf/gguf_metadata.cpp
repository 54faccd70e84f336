#include "store/gguf/gguf_metadata.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <span>

#include <fmt/format.h>

#include "base/checked.hpp"
#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/json/json.hpp"
#include "base/json/json_writer.hpp"
#include "base/string/utf8.hpp"

namespace masque::store {

namespace {

/// Q8_1 (9) is missing: programs disagree about its size, and no file has it.
constexpr std::array kTypes{
    GgmlType{0, "F32", 1, 4, DType::kF32},
    GgmlType{1, "F16", 1, 2, DType::kF16},
    GgmlType{2, "Q4_0", 32, 18},
    GgmlType{3, "Q4_1", 32, 20},
    GgmlType{6, "Q5_0", 32, 22},
    GgmlType{7, "Q5_1", 32, 24},
    GgmlType{8, "Q8_0", 32, 34},
    GgmlType{10, "Q2_K", 256, 84},
    GgmlType{11, "Q3_K", 256, 110},
    GgmlType{12, "Q4_K", 256, 144},
    GgmlType{13, "Q5_K", 256, 176},
    GgmlType{14, "Q6_K", 256, 210},
    GgmlType{15, "Q8_K", 256, 292},
    GgmlType{16, "IQ2_XXS", 256, 66},
    GgmlType{17, "IQ2_XS", 256, 74},
    GgmlType{18, "IQ3_XXS", 256, 98},
    GgmlType{19, "IQ1_S", 256, 50},
    GgmlType{20, "IQ4_NL", 32, 18},
    GgmlType{21, "IQ3_S", 256, 110},
    GgmlType{22, "IQ2_S", 256, 82},
    GgmlType{23, "IQ4_XS", 256, 136},
    GgmlType{24, "I8", 1, 1, DType::kI8},
    GgmlType{25, "I16", 1, 2, DType::kI16},
    GgmlType{26, "I32", 1, 4, DType::kI32},
    GgmlType{27, "I64", 1, 8, DType::kI64},
    GgmlType{28, "F64", 1, 8, DType::kF64},
    GgmlType{29, "IQ1_M", 256, 56},
    GgmlType{30, "BF16", 1, 2, DType::kBF16},
    GgmlType{34, "TQ1_0", 256, 54},
    GgmlType{35, "TQ2_0", 256, 66},
    GgmlType{39, "MXFP4", 32, 17},
    GgmlType{40, "NVFP4", 64, 36},
    GgmlType{41, "Q1_0", 128, 18},
};

/// How many types of metadata values there are: numbers are below.
constexpr std::uint32_t kGgufTypes = 13;

struct ValueType {
  std::string_view name;
  std::uint64_t bytes;
};

constexpr std::array<ValueType, kGgufTypes> kValueTypes{{
    {"UINT8", 1},
    {"INT8", 1},
    {"UINT16", 2},
    {"INT16", 2},
    {"UINT32", 4},
    {"INT32", 4},
    {"FLOAT32", 4},
    {"BOOL", 1},
    {"STRING", 0},
    {"ARRAY", 0},
    {"UINT64", 8},
    {"INT64", 8},
    {"FLOAT64", 8},
}};

/// The name of `type`: "UINT8", "STRING", …
std::string_view gguf_type_name(GgufType type) {
  return kValueTypes[static_cast<std::size_t>(type)].name;
}

/// Bytes of a value of `type`; 0 if they differ from value to value: kString and kArray.
std::uint64_t gguf_type_bytes(GgufType type) {
  return kValueTypes[static_cast<std::size_t>(type)].bytes;
}

template <class Wanted, class Projection>
const GgmlType* find_by(const Wanted& wanted, Projection projection) {
  const auto* found = std::ranges::find(kTypes, wanted, projection);
  return found == kTypes.end() ? nullptr : found;
}

constexpr std::uint64_t kShown = 5;      ///< elements of an array that people see
constexpr std::size_t kTypeBytes = 4;    ///< in front of a value
constexpr std::size_t kArrayBytes = 16;  ///< in front of the elements of an array

template <class Number>
Number number_at(std::string_view bytes, std::size_t at) {
  return load_number<Number>(bytes.data() + at);
}

/// Calls visit with the number of a type with a fixed size.
template <class F>
void visit_number(GgufType type, std::string_view bytes, std::size_t at, F visit) {
  switch (type) {
    case GgufType::kUint8: return visit(number_at<std::uint8_t>(bytes, at));
    case GgufType::kInt8: return visit(number_at<std::int8_t>(bytes, at));
    case GgufType::kUint16: return visit(number_at<std::uint16_t>(bytes, at));
    case GgufType::kInt16: return visit(number_at<std::int16_t>(bytes, at));
    case GgufType::kUint32: return visit(number_at<std::uint32_t>(bytes, at));
    case GgufType::kInt32: return visit(number_at<std::int32_t>(bytes, at));
    case GgufType::kFloat32: return visit(number_at<float>(bytes, at));
    case GgufType::kBool: return visit(bytes[at] != 0);
    case GgufType::kUint64: return visit(number_at<std::uint64_t>(bytes, at));
    case GgufType::kInt64: return visit(number_at<std::int64_t>(bytes, at));
    case GgufType::kFloat64: return visit(number_at<double>(bytes, at));
    case GgufType::kString:
    case GgufType::kArray: break;
  }
}

std::string number_text(GgufType type, std::string_view bytes, std::size_t at, bool json) {
  std::string text;
  visit_number(type, bytes, at, [&](auto number) {
    text = fmt::format("{}", number);
    if (json && !std::isfinite(static_cast<double>(number))) text = "null";
  });
  return text;
}

std::string quoted(const std::string& text) {
  return quote_json(valid_utf8(text) ? text : escape(text));
}

GgufType type_of(const TypedValue& value) {
  return static_cast<GgufType>(number_at<std::uint32_t>(value.bytes, 0));
}

GgufType element_type(const TypedValue& value) {
  return static_cast<GgufType>(number_at<std::uint32_t>(value.bytes, kTypeBytes));
}

/// Calls visit with every text of a STRING[], until it returns false.
template <class F>
void visit_texts(const TypedValue& value, F visit) {
  const std::string_view bytes = value.bytes;
  const auto count = number_at<std::uint64_t>(bytes, 2 * kTypeBytes);
  std::size_t at = kArrayBytes;
  for (std::uint64_t i = 0; i < count; ++i) {
    const auto length = static_cast<std::size_t>(number_at<std::uint64_t>(bytes, at));
    if (!visit(std::string(bytes.substr(at + 8, length)))) return;
    at += 8 + length;
  }
}

/// The texts for people of an array whose bytes are there.
void describe_array(TypedValue& value) {
  const GgufType element = element_type(value);
  const auto count = number_at<std::uint64_t>(value.bytes, 2 * kTypeBytes);
  std::vector<std::string> shown;
  if (element == GgufType::kString) {
    visit_texts(value, [&](const std::string& text) {
      if (shown.size() < kShown) shown.push_back(quoted(text));
      return shown.size() < kShown;
    });
  } else {
    const std::uint64_t size = gguf_type_bytes(element);
    for (std::uint64_t i = 0; i < std::min(count, kShown); ++i)
      shown.push_back(number_text(element, value.bytes, kArrayBytes + i * size, true));
  }
  std::string list;
  JsonWriter items(list);
  for (const std::string& text : shown) items.raw(text);
  value.type = fmt::format("{}[]", gguf_type_name(element));
  value.text = fmt::format("{}: {}{}", count, list, count > kShown ? ",…" : "");
  value.json.clear();
  JsonWriter(value.json)
      .begin_object()
      .member("count", count)
      .key("first")
      .begin_array()
      .raw(list)
      .end_array()
      .end_object();
}

bool check_bools(GgufCursor& cursor, std::string_view bytes, std::uint64_t offset) {
  const auto wrong = std::ranges::find_if(bytes, [](char c) { return c != 0 && c != 1; });
  if (wrong == bytes.end()) return true;
  return cursor.fail(
      "gguf-bool", fmt::format("a BOOL of {}, expected 0 or 1", static_cast<unsigned char>(*wrong)),
      offset + static_cast<std::uint64_t>(wrong - bytes.begin()));
}

bool read_type(GgufCursor& cursor, bool element, TypedValue& value, GgufType& type) {
  const std::uint64_t start = cursor.offset();
  std::uint32_t number = 0;
  if (!cursor.number(number)) return false;
  type = static_cast<GgufType>(number);
  if (number >= kGgufTypes || (element && type == GgufType::kArray)) {
    return cursor.fail("gguf-value-type",
                       number >= kGgufTypes
                           ? fmt::format("'{}' has type {}, expected one below {}",
                                         escape(value.key), number, kGgufTypes)
                           : fmt::format("'{}' is an array of arrays", escape(value.key)),
                       start);
  }
  append_number(value.bytes, number);
  return true;
}

bool read_array(GgufCursor& cursor, std::uint64_t most, TypedValue& value) {
  GgufType element{};
  if (!read_type(cursor, true, value, element)) return false;
  const std::uint64_t start = cursor.offset();
  std::uint64_t count = 0;
  if (!cursor.number(count)) return false;
  append_number(value.bytes, count);
  const bool texts = element == GgufType::kString;
  const auto least = checked_multiply(count, texts ? 8 : gguf_type_bytes(element));
  if (!least || *least > cursor.left()) {
    return cursor.fail(
        "gguf-array",
        fmt::format("'{}' has {} elements of {}, {} bytes are left", escape(value.key), count,
                    gguf_type_name(element), cursor.left()),
        start);
  }
  if (*least > most) {
    return cursor.fail("limit-metadata",
                       fmt::format("'{}' has {} elements, at most {} bytes of metadata",
                                   escape(value.key), count, most),
                       start);
  }
  if (!texts) {
    const std::uint64_t begin = cursor.offset();
    if (!cursor.bytes(*least, value.bytes)) return false;
    if (element == GgufType::kBool &&
        !check_bools(cursor, std::string_view(value.bytes).substr(kArrayBytes), begin))
      return false;
  }
  std::string text;
  for (std::uint64_t i = 0; texts && i < count; ++i) {
    // Bytes of tokens need not be UTF-8.
    if (!cursor.text(most - std::min<std::uint64_t>(most, value.bytes.size()), text)) return false;
    append_text(value.bytes, text);
  }
  describe_array(value);
  return true;
}

}  // namespace

bool read_gguf_value(GgufCursor& cursor, std::uint64_t most, TypedValue& value) {
  GgufType type{};
  if (!read_type(cursor, false, value, type)) return false;
  value.type = gguf_type_name(type);
  if (type == GgufType::kArray) return read_array(cursor, most, value);
  const std::uint64_t start = cursor.offset();
  if (type == GgufType::kString) {
    if (!cursor.text(most, value.text)) return false;
    if (!valid_utf8(value.text)) {
      return cursor.fail("not-utf8", fmt::format("the text of '{}'", escape(value.key)), start + 8);
    }
    append_text(value.bytes, value.text);
    return true;
  }
  if (!cursor.bytes(gguf_type_bytes(type), value.bytes)) return false;
  if (type == GgufType::kBool &&
      !check_bools(cursor, std::string_view(value.bytes).substr(kTypeBytes), start))
    return false;
  value.text = number_text(type, value.bytes, kTypeBytes, false);
  value.json = number_text(type, value.bytes, kTypeBytes, true);
  return true;
}

std::optional<std::uint64_t> gguf_integer(const TypedValue& value) {
  std::optional<std::uint64_t> found;
  visit_number(type_of(value), value.bytes, kTypeBytes, [&]<class Number>(Number number) {
    if constexpr (std::is_integral_v<Number> && !std::is_same_v<Number, bool>) {
      if (std::in_range<std::uint64_t>(number)) found = static_cast<std::uint64_t>(number);
    }
  });
  return found;
}

std::optional<std::vector<std::string>> gguf_texts(const TypedValue& value) {
  if (type_of(value) != GgufType::kArray || element_type(value) != GgufType::kString)
    return std::nullopt;
  std::vector<std::string> texts;
  texts.reserve(gguf_array_count(value).value());
  visit_texts(value, [&](std::string text) {
    texts.push_back(std::move(text));
    return true;
  });
  return texts;
}

std::optional<std::string_view> gguf_elements(const TypedValue& value, GgufType type) {
  if (type_of(value) != GgufType::kArray || element_type(value) != type) return std::nullopt;
  return std::string_view(value.bytes).substr(kArrayBytes);
}

std::optional<std::uint64_t> gguf_array_count(const TypedValue& value) {
  if (type_of(value) != GgufType::kArray) return std::nullopt;
  return number_at<std::uint64_t>(value.bytes, 2 * kTypeBytes);
}

TypedValue make_gguf_text(std::string key, std::string text) {
  TypedValue value{std::move(key), "STRING", std::move(text), {}, {}};
  append_number(value.bytes, static_cast<std::uint32_t>(GgufType::kString));
  append_text(value.bytes, value.text);
  return value;
}

namespace {

/// A value of a type of fixed size, whose bytes are given.
TypedValue make_scalar(std::string key, GgufType type, const std::string& bytes) {
  TypedValue value{std::move(key), std::string(gguf_type_name(type)), {}, {}, {}};
  append_number(value.bytes, static_cast<std::uint32_t>(type));
  value.bytes += bytes;
  value.text = number_text(type, value.bytes, kTypeBytes, false);
  value.json = number_text(type, value.bytes, kTypeBytes, true);
  return value;
}

template <class Number>
TypedValue make_number(std::string key, GgufType type, Number number) {
  std::string bytes;
  append_number(bytes, number);
  return make_scalar(std::move(key), type, bytes);
}

TypedValue start_array(std::string key, GgufType element, std::uint64_t count) {
  TypedValue value{std::move(key), {}, {}, {}, {}};
  append_number(value.bytes, static_cast<std::uint32_t>(GgufType::kArray));
  append_number(value.bytes, static_cast<std::uint32_t>(element));
  append_number(value.bytes, count);
  return value;
}

}  // namespace

TypedValue make_gguf_uint32(std::string key, std::uint32_t number) {
  return make_number(std::move(key), GgufType::kUint32, number);
}

TypedValue make_gguf_float32(std::string key, float number) {
  return make_number(std::move(key), GgufType::kFloat32, number);
}

TypedValue make_gguf_bool(std::string key, bool flag) {
  return make_number(std::move(key), GgufType::kBool, static_cast<std::uint8_t>(flag));
}

TypedValue make_gguf_texts(std::string key, std::span<const std::string> texts) {
  TypedValue value = start_array(std::move(key), GgufType::kString, texts.size());
  for (const std::string& text : texts) append_text(value.bytes, text);
  describe_array(value);
  return value;
}

TypedValue make_gguf_array(std::string key, GgufType type, std::string_view elements) {
  const std::uint64_t size = gguf_type_bytes(type);
  MASQUE_CHECK(size > 0 && elements.size() % size == 0);
  TypedValue value = start_array(std::move(key), type, elements.size() / size);
  value.bytes += elements;
  describe_array(value);
  return value;
}

TypedValue make_gguf_integer(const TypedValue& like, std::uint64_t number,
                             const std::string& path) {
  const GgufType type = type_of(like);
  TypedValue value{like.key, like.type, fmt::format("{}", number), fmt::format("{}", number), {}};
  append_number(value.bytes, static_cast<std::uint32_t>(type));
  bool fits = false;
  visit_number(type, like.bytes, kTypeBytes, [&]<class Number>(Number /*before*/) {
    if constexpr (std::is_integral_v<Number> && !std::is_same_v<Number, bool>) {
      fits = std::in_range<Number>(number);
      if (fits) append_number(value.bytes, static_cast<Number>(number));
    }
  });
  if (!fits) {
    throw InputError(path, fmt::format("metadata '{}' is {}, which cannot be {}", escape(like.key),
                                       like.type, number));
  }
  return value;
}

const TypedValue* find_typed(std::span<const TypedValue> values, std::string_view key) {
  const auto found = std::ranges::find(values, key, &TypedValue::key);
  return found == values.end() ? nullptr : &*found;
}

void append_text(std::string& out, std::string_view text) {
  append_number(out, static_cast<std::uint64_t>(text.size()));
  out += text;
}

std::optional<GgufPart> gguf_part(std::span<const TypedValue> metadata) {
  const TypedValue* count = find_typed(metadata, "split.count");
  const TypedValue* number = find_typed(metadata, "split.no");
  if (count == nullptr || number == nullptr) return std::nullopt;
  const auto parts = gguf_integer(*count);
  const auto part = gguf_integer(*number);
  if (!parts || !part || *parts <= 1) return std::nullopt;
  return GgufPart{*part, *parts};
}

const GgmlType* find_ggml_type(std::uint32_t number) { return find_by(number, &GgmlType::number); }

const GgmlType* find_ggml_type(std::string_view name) { return find_by(name, &GgmlType::name); }

const GgmlType* ggml_type_of(DType dtype) {
  return find_by(std::optional(dtype), &GgmlType::dtype);
}

namespace {

constexpr std::uint64_t kBuffer = 1 << 16;

}  // namespace

bool GgufCursor::fail(std::string rule, std::string message, std::uint64_t offset,
                      std::string tensor) {
  if (!violation_)
    violation_ = Violation{std::move(rule), std::move(message), std::move(tensor), offset, {}};
  return false;
}

bool GgufCursor::need(std::uint64_t count) {
  if (count <= left()) return true;
  return fail("too-short",
              fmt::format("{} bytes left, expected {} more of the header", left(), count), at_);
}

void GgufCursor::fetch(std::uint64_t count) {
  if (at_ >= begin_ && at_ + count <= begin_ + buffer_.size()) return;
  begin_ = at_;
  buffer_.resize(std::min(std::max(kBuffer, count), left()));
  read_(begin_, buffer_);
}

bool GgufCursor::bytes(std::uint64_t count, std::string& out) {
  if (!need(count)) return false;
  const std::size_t before = out.size();
  out.resize(before + count);
  const auto target = std::as_writable_bytes(std::span(out).subspan(before));
  if (count > kBuffer) {
    read_(at_, target);
  } else if (count > 0) {
    fetch(count);
    std::memcpy(target.data(), buffer_.data() + (at_ - begin_), count);
  }
  at_ += count;
  return true;
}

bool GgufCursor::text(std::uint64_t most, std::string& out) {
  out.clear();
  const std::uint64_t start = at_;
  std::uint64_t length = 0;
  if (!number(length)) return false;
  if (length > left()) {
    return fail("gguf-string", fmt::format("a text of {} bytes, {} are left", length, left()),
                start);
  }
  if (length > most)
    return fail("limit-metadata", fmt::format("a text of {} bytes, at most {}", length, most),
                start);
  return bytes(length, out);
}

}  // namespace masque::store
