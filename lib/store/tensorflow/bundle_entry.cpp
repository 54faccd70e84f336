#include "store/tensorflow/bundle_entry.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>

#include <fmt/format.h>

#include "base/checked.hpp"
#include "base/divide.hpp"
#include "store/tensorflow/leveldb_table.hpp"
#include "store/tensorflow/wire.hpp"

namespace masque::store {

namespace {

struct TypeRow {
  std::uint64_t number;
  std::string_view name;
  std::optional<DType> dtype = std::nullopt;
  std::uint64_t element = 0;  ///< bytes, where there is no dtype to say it; 0: no fixed size
};

/// A type that we do not have, each element of which takes so many bytes.
constexpr TypeRow sized(std::uint64_t number, std::string_view name, std::uint64_t element) {
  return {number, name, std::nullopt, element};
}

constexpr std::array kTypes{
    TypeRow{1, "FLOAT", DType::kF32},
    TypeRow{2, "DOUBLE", DType::kF64},
    TypeRow{3, "INT32", DType::kI32},
    TypeRow{4, "UINT8", DType::kU8},
    TypeRow{5, "INT16", DType::kI16},
    TypeRow{6, "INT8", DType::kI8},
    TypeRow{kTensorflowString, "STRING"},
    TypeRow{8, "COMPLEX64", DType::kC64},
    TypeRow{9, "INT64", DType::kI64},
    TypeRow{10, "BOOL", DType::kBool},
    sized(11, "QINT8", 1),
    sized(12, "QUINT8", 1),
    sized(13, "QINT32", 4),
    TypeRow{14, "BFLOAT16", DType::kBF16},
    sized(15, "QINT16", 2),
    sized(16, "QUINT16", 2),
    TypeRow{17, "UINT16", DType::kU16},
    sized(18, "COMPLEX128", 16),
    TypeRow{19, "HALF", DType::kF16},
    TypeRow{20, "RESOURCE"},
    TypeRow{21, "VARIANT"},
    TypeRow{22, "UINT32", DType::kU32},
    TypeRow{23, "UINT64", DType::kU64},
    TypeRow{24, "FLOAT8_E5M2", DType::kF8E5M2},
    TypeRow{25, "FLOAT8_E4M3FN", DType::kF8E4M3},
    TypeRow{26, "FLOAT8_E4M3FNUZ", DType::kF8E4M3Fnuz},
    sized(27, "FLOAT8_E4M3B11FNUZ", 1),
    TypeRow{28, "FLOAT8_E5M2FNUZ", DType::kF8E5M2Fnuz},
    sized(29, "INT4", 1),
    sized(30, "UINT4", 1),
    sized(31, "INT2", 1),
    sized(32, "UINT2", 1),
    sized(33, "FLOAT4_E2M1FN", 1),
};

/// References to variables, which are never saved, begin here.
constexpr std::uint64_t kFirstReference = 100;
constexpr std::size_t kMaxBundleRank = 64;
constexpr std::uint64_t kMostInt64 = std::numeric_limits<std::int64_t>::max();
/// What a reader of our age (1) may read: an index may ask for a newer one.
constexpr std::uint64_t kVersion = 1;

const TypeRow* type_row(std::uint64_t number) {
  const auto found = std::ranges::find(kTypes, number, &TypeRow::number);
  return found == kTypes.end() ? nullptr : &*found;
}

/// Whether the message `versions` lets a reader of our version read; nothing if it is none.
std::optional<bool> is_readable_version(std::string_view versions) {
  WireReader reader(versions);
  bool readable = true;
  while (const auto field = reader.next()) {
    if (field->is_number(2) && field->value > kVersion) readable = false;
    if (field->is_number(3) && field->value == kVersion) readable = false;
    if (!field->is_bytes(3)) continue;  // the same numbers, one after the other
    std::size_t at = 0;
    while (at < field->bytes.size()) {
      const auto bad = read_varint(field->bytes, at);
      if (!bad) return std::nullopt;
      if (*bad == kVersion) readable = false;
    }
  }
  return reader.broken() ? std::nullopt : std::optional(readable);
}

/// Reads the fields of one entry.
class EntryReader {
 public:
  EntryReader(std::string name, std::uint64_t at) {
    entry_.name = std::move(name);
    entry_.at = at;
  }

  Checked<BundleEntry> read(std::string_view message) {
    WireReader reader(message);
    while (const auto field = reader.next()) {
      if (!take(*field)) return std::move(*violation_);
    }
    if (reader.broken()) fail("bundle-entry", "not a valid message of an entry");
    if (!violation_ && (entry_.type == 0 || entry_.type >= kFirstReference))
      fail("unknown-dtype", fmt::format("type {} is not a type of values", entry_.type));
    if (violation_) return std::move(*violation_);
    return std::move(entry_);
  }

 private:
  bool fail(const char* rule, std::string message) {
    const bool slice = entry_.name.starts_with('\0');
    violation_ = Violation{rule, std::move(message), slice ? "" : entry_.name, entry_.at};
    return false;
  }

  bool take(const WireField& field) {
    const bool number = field.type == WireType::kVarint;
    const bool bytes = field.type == WireType::kBytes;
    switch (field.number) {
      case 1: entry_.type = field.value; return number || wrong_type();
      case 2: return bytes ? take_shape(field.bytes) : wrong_type();
      case 3: return number ? take_number(field.value, entry_.shard) : wrong_type();
      case 4: return number ? take_number(field.value, entry_.offset) : wrong_type();
      case 5: return number ? take_number(field.value, entry_.size) : wrong_type();
      case 6:
        entry_.crc = static_cast<std::uint32_t>(field.value);
        return field.type == WireType::kFixed32 || wrong_type();
      case 7: return bytes ? take_slice(field.bytes) : wrong_type();
      default: return true;  // of a later TensorFlow
    }
  }

  bool wrong_type() { return fail("bundle-entry", "a field whose type does not match its number"); }

  bool take_number(std::uint64_t value, std::uint64_t& out) {
    out = value;
    return value <= kMostInt64 || fail("bad-number", "an offset, a size or a dimension below 0");
  }

  bool take_shape(std::string_view message) {
    entry_.shape.clear();  // of a field that comes twice the last one counts
    WireReader reader(message);
    while (const auto field = reader.next()) {
      if (field->is_number(3) && field->value != 0)
        return fail("bundle-entry", "a shape of unknown rank");
      if (!field->is_bytes(2)) continue;
      if (entry_.shape.size() == kMaxBundleRank)
        return fail("limit-rank", fmt::format("more than {} dimensions", kMaxBundleRank));
      std::uint64_t size = 0;
      WireReader dimension(field->bytes);
      while (const auto part = dimension.next()) {
        if (part->is_number(1) && !take_number(part->value, size)) return false;
      }
      if (dimension.broken()) return fail("bundle-entry", "not a valid message of a shape");
      entry_.shape.push_back(size);
    }
    return !reader.broken() || fail("bundle-entry", "not a valid message of a shape");
  }

  bool take_slice(std::string_view message) {
    BundleSlice slice;
    WireReader reader(message);
    while (const auto field = reader.next()) {
      if (!field->is_bytes(1)) continue;
      if (slice.size() == kMaxBundleRank)
        return fail("limit-rank", fmt::format("more than {} dimensions", kMaxBundleRank));
      BundleExtent& extent = slice.emplace_back();
      WireReader parts(field->bytes);
      while (const auto part = parts.next()) {
        if (part->is_number(1) && !take_number(part->value, extent.start)) return false;
        if (part->is_number(2) && !take_number(part->value, extent.length.emplace())) return false;
      }
      if (parts.broken()) return fail("bundle-entry", "not a valid message of a slice");
    }
    entry_.slices.push_back(std::move(slice));
    return !reader.broken() || fail("bundle-entry", "not a valid message of a slice");
  }

  BundleEntry entry_;
  std::optional<Violation> violation_;
};

/// A number of at most 64 bits: how many bytes, then these, the largest first.
void append_count(std::string& out, std::uint64_t value) {
  const auto bytes =
      static_cast<std::size_t>(divide_up(static_cast<int>(std::bit_width(value)), 8));
  out.push_back(static_cast<char>(bytes));
  for (std::size_t i = bytes; i-- > 0;) out.push_back(static_cast<char>(value >> (8 * i)));
}

/// A number with a sign, as few bytes as hold it, the largest first: as many leading bits as bytes
/// are 1 and the next one is 0 for those not below 0, and all of it is inverted for the others.
void append_signed(std::string& out, std::int64_t value) {
  const bool negative = value < 0;
  const auto magnitude = static_cast<std::uint64_t>(negative ? ~value : value);
  const auto bytes = static_cast<std::size_t>(std::bit_width(magnitude)) / 7 + 1;
  std::array<unsigned char, 10> code{};
  for (std::size_t i = 0; i < std::min<std::size_t>(bytes, 8); ++i)
    code[bytes - 1 - i] = static_cast<unsigned char>(magnitude >> (8 * i));
  for (std::size_t bit = 0; bit < bytes; ++bit)
    code[bit / 8] |= static_cast<unsigned char>(0x80U >> (bit % 8));
  for (std::size_t i = 0; i < bytes; ++i)
    out.push_back(static_cast<char>(negative ? ~code[i] : code[i]));
}

}  // namespace

std::optional<DType> dtype_of_tensorflow(std::uint64_t number) {
  const TypeRow* row = type_row(number);
  return row == nullptr ? std::nullopt : row->dtype;
}

std::optional<std::uint64_t> tensorflow_bytes(std::uint64_t number, const Shape& shape,
                                              std::uint64_t stored) {
  if (const auto dtype = dtype_of_tensorflow(number)) return byte_count(*dtype, shape);
  const auto elements = element_count(shape);
  if (!elements) return std::nullopt;
  const TypeRow* row = type_row(number);
  return row == nullptr || row->element == 0 ? stored : checked_multiply(*elements, row->element);
}

std::optional<std::uint64_t> tensorflow_of_dtype(DType dtype) {
  const auto found = std::ranges::find(kTypes, std::optional(dtype), &TypeRow::dtype);
  return found == kTypes.end() ? std::nullopt : std::optional(found->number);
}

std::string tensorflow_type_name(std::uint64_t number) {
  const TypeRow* row = type_row(number);
  return row == nullptr ? fmt::format("TYPE_{}", number) : std::string(row->name);
}

std::optional<std::uint64_t> tensorflow_type(std::string_view name) {
  const auto found = std::ranges::find(kTypes, name, &TypeRow::name);
  return found == kTypes.end() ? std::nullopt : std::optional(found->number);
}

Checked<BundleHeader> read_bundle_header(std::string_view message, std::uint64_t at) {
  constexpr std::uint64_t kMostShards = 1000;
  BundleHeader header;
  bool big_endian = false;
  bool readable = true;
  WireReader reader(message);
  while (const auto field = reader.next()) {
    if (field->is_number(1)) header.shards = field->value;
    if (field->is_number(2)) big_endian = field->value != 0;
    if (!field->is_bytes(3)) continue;
    const auto version = is_readable_version(field->bytes);
    if (!version) return Violation{"bundle-header", "not a valid message of versions", "", at};
    readable = *version;
  }
  if (reader.broken()) return Violation{"bundle-header", "not a valid message of a header", "", at};
  if (header.shards == 0 || header.shards > kMostShards) {
    return Violation{"bundle-header",
                     fmt::format("{} data files, expected 1 to {}", header.shards, kMostShards), "",
                     at};
  }
  if (big_endian) return Violation{"bundle-endianness", "the values are big-endian", "", at};
  if (!readable) {
    return Violation{"bundle-version", fmt::format("not for readers of version {}", kVersion), "",
                     at};
  }
  return header;
}

Checked<BundleEntry> read_bundle_entry(std::string name, std::string_view message,
                                       std::uint64_t at) {
  return EntryReader(std::move(name), at).read(message);
}

std::string slice_key(std::string_view name, const BundleSlice& slice) {
  std::string key;
  append_count(key, 0);
  for (const char c : name) {
    key.push_back(c);
    if (c == '\0') key.push_back('\xFF');
    if (c == '\xFF') key.push_back('\0');
  }
  key.append("\0\x01", 2);
  append_count(key, slice.size());
  for (const BundleExtent& extent : slice) {
    append_signed(key, static_cast<std::int64_t>(extent.start));
    append_signed(key, extent.length ? static_cast<std::int64_t>(*extent.length) : -1);
  }
  return key;
}

namespace {

/// One shard, little-endian (absent), version 1 of the format.
constexpr std::string_view kHeader{"\x08\x01\x1A\x02\x08\x01", 6};

std::string entry_of(const BundleItem& item) {
  std::string shape;
  for (const std::uint64_t size : item.shape) {
    std::string dimension;
    wire::put_number(dimension, 1, size);
    wire::put_bytes(shape, 2, dimension);
  }
  std::string entry;
  wire::put_number(entry, 1, item.type);
  wire::put_bytes(entry, 2, shape);
  wire::put_number(entry, 4, item.offset);
  wire::put_number(entry, 5, item.size);
  wire::put_fixed32(entry, 6, item.checksum);
  return entry;
}

}  // namespace

std::string write_bundle_index(const std::vector<BundleItem>& items) {
  LevelDbTableWriter table;
  table.add("", kHeader);
  for (const BundleItem& item : items) table.add(item.name, entry_of(item));
  return table.finish();
}

}  // namespace masque::store
