#include "store/numpy/npy.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/json.hpp"
#include "base/little_endian.hpp"
#include "store/numpy/npy_descr.hpp"

namespace masque::store {

namespace {

using namespace std::string_view_literals;

constexpr std::string_view kMagic = "\x93NUMPY"sv;
constexpr std::uint64_t kAlignment = 64;
constexpr std::size_t kGrowthDigits = 21;  // NumPy leaves space for the first dimension to grow

/// Reads the header's text, a Python literal of one fixed form. `begin_` is its place in the file.
class HeaderParser {
 public:
  HeaderParser(std::string_view text, std::uint64_t begin, const NpyLimits& limits)
      : text_(text), begin_(begin), limits_(limits) {}

  NpyHeader header;
  std::optional<Violation> violation;

  bool parse() {
    if (!next_is('{')) return fail("npy-header", "the header is not a dictionary, expected '{'");
    while (!next_is('}')) {
      if (!entry()) return false;
      if (next_is(',')) continue;
      if (next_is('}')) break;
      return fail("npy-header", "expected ',' or '}' after a value");
    }
    skip_space();
    if (at_ < text_.size()) return fail("npy-header", "bytes after the dictionary");
    at_ = 0;
    for (std::size_t i = 0; i < kKeys.size(); ++i) {
      if (!seen_[i]) return fail("missing-field", fmt::format("no '{}'", kKeys[i]));
    }
    return true;
  }

 private:
  static constexpr std::array kKeys{"descr"sv, "fortran_order"sv, "shape"sv};

  bool fail(std::string rule, std::string message) {
    violation = Violation{std::move(rule), std::move(message), "", begin_ + at_};
    return false;
  }

  void skip_space() { at_ = std::min(text_.find_first_not_of(" \t\r\n", at_), text_.size()); }

  bool next_is(char wanted) {
    skip_space();
    if (at_ == text_.size() || text_[at_] != wanted) return false;
    ++at_;
    return true;
  }

  /// A string between quotes, without escapes; nothing, at the same place, if there is none.
  std::optional<std::string_view> string() {
    skip_space();
    if (at_ == text_.size() || (text_[at_] != '\'' && text_[at_] != '"')) return std::nullopt;
    const std::size_t close = text_.find(text_[at_], at_ + 1);
    if (close == std::string_view::npos) return std::nullopt;
    const std::string_view inside = text_.substr(at_ + 1, close - at_ - 1);
    if (inside.find_first_of("\\\n\r") != std::string_view::npos) return std::nullopt;
    at_ = close + 1;
    return inside;
  }

  bool entry() {
    skip_space();
    const std::size_t key_begin = at_;
    const auto key = string();
    if (!key) return fail("npy-header", "expected a key in quotes");
    const auto place =
        static_cast<std::size_t>(std::find(kKeys.begin(), kKeys.end(), *key) - kKeys.begin());
    if (place == kKeys.size() || seen_[place]) at_ = key_begin;
    if (place == kKeys.size()) {
      return fail("unknown-field", fmt::format("'{}' is not a key of the format", escape(*key)));
    }
    if (seen_[place]) return fail("duplicate-key", fmt::format("a second '{}'", *key));
    seen_[place] = true;
    if (!next_is(':')) return fail("npy-header", "expected ':' after a key");
    skip_space();
    if (place == 0) return descr();
    return place == 1 ? fortran_order() : shape();
  }

  bool descr() {
    const std::size_t begin = at_;
    if (at_ < text_.size() && text_[at_] == '[') {
      return fail("unsupported-dtype", "a structured type (records), expected a plain one");
    }
    const auto descr = string();
    const std::size_t end = std::exchange(at_, begin);
    if (!descr) return fail("unknown-dtype", "descr is not a string, expected one such as '<f4'");
    auto type = parse_npy_descr(*descr);
    if (auto* broken = std::get_if<Violation>(&type)) {
      return fail(std::move(broken->rule), std::move(broken->message));
    }
    header.dtype = std::get<NpyType>(type).dtype;
    header.big_endian = std::get<NpyType>(type).big_endian;
    at_ = end;
    return true;
  }

  bool fortran_order() {
    for (const bool value : {true, false}) {
      const std::string_view word = value ? "True"sv : "False"sv;
      if (text_.substr(at_).starts_with(word)) {
        header.fortran_order = value;
        at_ += word.size();
        return true;
      }
    }
    return fail("bad-bool", "fortran_order is neither True nor False");
  }

  bool shape() {
    const std::size_t begin = at_;
    const auto no_tuple = [&] {
      at_ = begin;
      return fail("not-a-tuple", "shape is not a tuple of whole numbers, expected one");
    };
    if (!next_is('(')) return no_tuple();
    bool comma = true;
    while (!next_is(')')) {
      if (!comma) return no_tuple();
      if (!dimension()) return false;
      comma = next_is(',');
    }
    if (header.shape.size() == 1 && !comma) return no_tuple();  // (3) is a number
    return true;
  }

  bool dimension() {
    skip_space();
    const std::size_t end = std::min(text_.find_first_not_of("0123456789", at_), text_.size());
    const auto value = parse_unsigned(text_.substr(at_, end - at_));
    if (!value) {
      return fail("bad-number", "a dimension that is not a whole number below 2^64, expected one");
    }
    if (header.shape.size() >= limits_.rank) {
      return fail("limit-rank", fmt::format("more than {} dimensions", limits_.rank));
    }
    header.shape.push_back(*value);
    at_ = end;
    if (at_ < text_.size() && text_[at_] == 'L') ++at_;  // a long of Python 2
    return true;
  }

  std::string_view text_;
  std::uint64_t begin_;
  const NpyLimits& limits_;
  std::size_t at_ = 0;
  std::array<bool, kKeys.size()> seen_{};
};

/// Where the header's text is: the two numbers in front of it.
struct TextRange {
  std::uint64_t begin = 0;
  std::uint64_t length = 0;
};

Checked<TextRange> find_text(Bytes first, std::uint64_t size, const NpyLimits& limits) {
  const std::string_view text(reinterpret_cast<const char*>(first.data()), first.size());
  if (text.substr(0, kMagic.size()) != kMagic.substr(0, text.size())) {
    return Violation{"npy-magic", "does not begin with 93 'NUMPY'", "", 0};
  }
  const auto too_short = [&](int expected) {
    return Violation{"too-short", fmt::format("{} bytes, expected at least {}", size, expected)};
  };
  if (first.size() < 10) return too_short(10);
  const int major = std::to_integer<int>(first[6]);
  const int minor = std::to_integer<int>(first[7]);
  if (major < 1 || major > 3 || minor != 0) {
    return Violation{"npy-version",
                     fmt::format("version {}.{}, expected 1.0, 2.0 or 3.0", major, minor), "", 6};
  }
  const std::size_t width = major == 1 ? 2 : 4;
  if (first.size() < 8 + width) return too_short(12);
  const TextRange range{8 + width, major == 1 ? load_number<std::uint16_t>(&first[8])
                                              : load_number<std::uint32_t>(&first[8])};
  if (range.length > size - range.begin) {
    return Violation{"header-beyond-file",
                     fmt::format("a header of {} bytes, the file has {} after its length",
                                 range.length, size - range.begin),
                     "", 8};
  }
  if (range.length > limits.header_bytes) {
    return Violation{
        "header-too-large",
        fmt::format("a header of {} bytes, expected at most {}", range.length, limits.header_bytes),
        "", 8};
  }
  return range;
}

}  // namespace

Checked<NpyHeader> parse_npy_header(Bytes first, std::uint64_t size, const NpyLimits& limits) {
  MASQUE_CHECK(first.size() >= std::min(size, kNpyPrefixBytes + limits.header_bytes));
  first = first.first(std::min<std::uint64_t>(first.size(), size));
  auto range = find_text(first, size, limits);
  if (auto* violation = std::get_if<Violation>(&range)) return std::move(*violation);
  const auto [begin, length] = std::get<TextRange>(range);
  HeaderParser parser({reinterpret_cast<const char*>(first.data()) + begin, length}, begin, limits);
  if (!parser.parse()) return *std::move(parser.violation);
  NpyHeader& header = parser.header;
  header.data_begin = begin + length;
  const auto bytes = byte_count(header.dtype, header.shape);
  if (!bytes) {
    return Violation{"shape-overflow",
                     fmt::format("shape {} has more than 2^64 bits", shape_text(header.shape)), "",
                     begin};
  }
  header.data_bytes = *bytes;
  const std::uint64_t there = size - header.data_begin;
  if (header.data_bytes > there) {
    return Violation{
        "size-mismatch",
        fmt::format("{} {} needs {} bytes, the file has {} after its header",
                    dtype_name(header.dtype), shape_text(header.shape), header.data_bytes, there),
        "", header.data_begin};
  }
  if (header.data_bytes < there) {
    header.notes.push_back(fmt::format("{} bytes after the data", there - header.data_bytes));
  }
  return std::move(header);
}

std::string write_npy_header(DType dtype, const Shape& shape) {
  const auto descr = npy_descr(dtype);
  MASQUE_CHECK(descr.has_value() && shape.size() <= NpyLimits{}.rank);
  std::string text = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}{}), }}",
                                 *descr, fmt::join(shape, ", "), shape.size() == 1 ? "," : "");
  if (!shape.empty()) text.append(kGrowthDigits - std::to_string(shape[0]).size(), ' ');
  const std::size_t before = kMagic.size() + 4 + text.size() + 1;
  text.append(kAlignment - before % kAlignment, ' ');
  text += '\n';
  std::string out(kMagic);
  out +=
      {'\x01', '\x00', static_cast<char>(text.size() % 256), static_cast<char>(text.size() / 256)};
  return out + text;
}

}  // namespace masque::store
