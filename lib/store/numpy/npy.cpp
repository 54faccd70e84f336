#include "store/numpy/npy.hpp"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/json/json.hpp"
#include "base/little_endian.hpp"
#include "base/thread/interrupt.hpp"
#include "store/transpose.hpp"

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

namespace {

using namespace std::string_view_literals;

struct Spelled {
  DType dtype;
  std::string_view descr;
};

constexpr std::array kSpellings{
    Spelled{DType::kBool, "|b1"sv}, Spelled{DType::kI8, "|i1"sv},  Spelled{DType::kI16, "<i2"sv},
    Spelled{DType::kI32, "<i4"sv},  Spelled{DType::kI64, "<i8"sv}, Spelled{DType::kU8, "|u1"sv},
    Spelled{DType::kU16, "<u2"sv},  Spelled{DType::kU32, "<u4"sv}, Spelled{DType::kU64, "<u8"sv},
    Spelled{DType::kF16, "<f2"sv},  Spelled{DType::kF32, "<f4"sv}, Spelled{DType::kF64, "<f8"sv},
    Spelled{DType::kC64, "<c8"sv},
};

/// What a type that we do not read is, in words; nothing if NumPy would not write it either.
std::string_view kind_of_descr(std::string_view type) {
  if (type == "c16") return "complex128";
  if (type == "f12" || type == "f16" || type == "c24" || type == "c32") return "long double";
  if (type == "V2") return "raw bytes in which ml_dtypes saves bfloat16";
  if (type == "V1") return "raw bytes in which ml_dtypes saves 8-bit floats";
  if (type.starts_with('V')) return "raw bytes";
  if (type.starts_with('U') || type.starts_with('S') || type.starts_with('a')) return "text";
  if (type.starts_with('M') || type.starts_with('m')) return "dates or times";
  return {};
}

}  // namespace

Checked<NpyType> parse_npy_descr(std::string_view descr) {
  std::string_view type = descr;
  if (!type.empty() && "<>=|"sv.find(type[0]) != std::string_view::npos) type.remove_prefix(1);
  for (const auto& [dtype, known] : kSpellings) {
    if (known.substr(1) == type) {
      return NpyType{dtype, descr.starts_with('>') && dtype_bits(dtype) > 8};
    }
  }
  if (type.starts_with('O')) {
    return Violation{"object-array", "an array of Python objects, which is a pickle: never read"};
  }
  const std::string_view kind = kind_of_descr(type);
  if (kind.empty()) {
    return Violation{"unknown-dtype", fmt::format("descr '{}' is not a known type", escape(descr))};
  }
  return Violation{
      "unsupported-dtype",
      fmt::format("'{}' ({}), expected booleans, integers, f2, f4, f8 or c8", escape(descr), kind)};
}

std::optional<std::string_view> npy_descr(DType dtype) {
  for (const Spelled& spelling : kSpellings) {
    if (spelling.dtype == dtype) return spelling.descr;
  }
  return std::nullopt;
}

namespace {

constexpr std::size_t kPieceBytes = 1 << 20;

/// Puts elements that arrive in column-major order where they belong in row-major order.
class Transposer {
 public:
  Transposer(const Shape& shape, std::size_t width, MutableBytes out)
      : shape_(shape), width_(width), out_(out), index_(shape.size()), stride_(shape.size()) {
    std::uint64_t stride = width;
    for (std::size_t axis = shape.size(); axis-- > 0; stride *= shape[axis]) stride_[axis] = stride;
  }

  void add(Bytes elements) {
    for (; !elements.empty(); elements = elements.subspan(width_)) {
      std::copy_n(elements.begin(), width_, out_.begin() + static_cast<std::ptrdiff_t>(at_));
      step();
    }
  }

 private:
  void step() {
    for (std::size_t axis = 0; axis < shape_.size(); ++axis) {
      at_ += stride_[axis];
      if (++index_[axis] < shape_[axis]) return;
      at_ -= stride_[axis] * shape_[axis];
      index_[axis] = 0;
    }
  }

  const Shape& shape_;
  std::size_t width_;
  MutableBytes out_;
  std::vector<std::uint64_t> index_;   ///< of the next element
  std::vector<std::uint64_t> stride_;  ///< bytes from one to the next along an axis
  std::uint64_t at_ = 0;
};

/// The matrix that `source` gives column by column, a run of columns at a time.
std::optional<Violation> read_matrix(const NpyHeader& header, const ByteSource& source,
                                     MutableBytes out) {
  const std::size_t width = dtype_bits(header.dtype) / 8;
  const std::size_t column = header.shape[0] * width;
  const std::size_t row = header.shape[1] * width;
  std::vector<std::byte> buffer(std::min(kPieceBytes / column * column, out.size()));
  for (std::size_t at = 0; at < out.size(); at += buffer.size()) {
    throw_if_interrupted();
    const MutableBytes piece = MutableBytes(buffer).first(std::min(buffer.size(), out.size() - at));
    if (auto violation = source(piece)) return violation;
    if (header.big_endian) swap_bytes(header.dtype, piece);
    transpose(piece.data(), piece.size() / column, header.shape[0], width,
              out.data() + at / column * width, row);
  }
  return std::nullopt;
}

}  // namespace

void swap_bytes(DType dtype, MutableBytes data) {
  const std::size_t width = dtype == DType::kC64 ? 4 : dtype_bits(dtype) / 8;
  for (std::size_t at = 0; at < data.size(); at += width) {
    std::reverse(data.begin() + static_cast<std::ptrdiff_t>(at),
                 data.begin() + static_cast<std::ptrdiff_t>(at + width));
  }
}

bool is_transposed(const NpyHeader& header) {
  return header.fortran_order && header.shape.size() > 1;
}

std::optional<Violation> read_npy_elements(const NpyHeader& header, const ByteSource& source,
                                           MutableBytes out) {
  MASQUE_CHECK(out.size() == header.data_bytes);
  const bool transposed = is_transposed(header);
  if (transposed && !out.empty() && header.shape.size() == 2 &&
      header.shape[0] <= kPieceBytes / (dtype_bits(header.dtype) / 8))
    return read_matrix(header, source, out);
  Transposer transposer(header.shape, dtype_bits(header.dtype) / 8, out);
  std::vector<std::byte> buffer(transposed ? std::min(kPieceBytes, out.size()) : 0);
  // Every piece is of whole elements.
  for (std::size_t at = 0; at < out.size();) {
    throw_if_interrupted();
    const std::size_t count = std::min(kPieceBytes, out.size() - at);
    const MutableBytes piece =
        transposed ? MutableBytes(buffer).first(count) : out.subspan(at, count);
    if (auto violation = source(piece)) return violation;
    if (header.big_endian) swap_bytes(header.dtype, piece);
    if (transposed) transposer.add(piece);
    at += count;
  }
  return std::nullopt;
}

std::string npy_header_for(const std::string& path, DType dtype, const Shape& shape) {
  if (!npy_descr(dtype)) {
    throw InputError(path, fmt::format("npy has no type for {}, expected a conversion to F32 first",
                                       dtype_name(dtype)));
  }
  if (shape.size() > NpyLimits{}.rank) {
    throw InputError(path, fmt::format("an array of {} dimensions, npy has at most {}",
                                       shape.size(), NpyLimits{}.rank));
  }
  return write_npy_header(dtype, shape);
}

std::uint64_t npy_data_bytes(const std::string& path, DType dtype, const Shape& shape) {
  const auto bytes = byte_count(dtype, shape);
  if (!bytes) {
    throw InputError(path, fmt::format("an array of shape {} is too large", shape_text(shape)));
  }
  return *bytes;
}

}  // namespace masque::store
