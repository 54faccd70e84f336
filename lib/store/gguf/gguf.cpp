#include "store/gguf/gguf.hpp"

#include <algorithm>
#include <limits>
#include <unordered_set>

#include <fmt/format.h>

#include "base/checked.hpp"
#include "base/divide.hpp"
#include "base/escape.hpp"
#include "base/string/utf8.hpp"
#include "store/gguf/gguf_metadata.hpp"
#include "store/gguf/gguf_names.hpp"

namespace masque::store {

namespace {

constexpr std::uint64_t kLeastMetadata = 13;  ///< bytes of a key, a type and a value
constexpr std::uint64_t kLeastTensor = 24;    ///< bytes of the description of a tensor
constexpr std::uint64_t kMostAlignment = 1 << 20;
constexpr auto kMostSize = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
constexpr std::uint32_t kQ81 = 9;  ///< a type that find_ggml_type() leaves out

/// The description of a tensor.
struct Entry {
  std::string name;
  const GgmlType* type = nullptr;
  Shape shape;
  std::uint64_t offset = 0;  ///< of its data, as the file has it
  std::uint64_t bytes = 0;
  std::uint64_t place = 0;  ///< of the entry in the file
};

/// One reading of a header.
class Parser {
 public:
  Parser(const GgufRead& read, std::uint64_t size, const GgufLimits& limits)
      : cursor_(read, size), size_(size), limits_(limits) {}

  Checked<FileContent> parse() {
    if (!read_counts() || !read_metadata() || !check_tokenizer() || !read_entries() || !place())
      return *cursor_.violation();
    return std::move(content_);
  }

 private:
  bool read_counts() {
    std::string magic;
    std::uint32_t version = 0;
    if (!cursor_.bytes(4, magic) || !cursor_.number(version)) return false;
    if (magic != "GGUF") return cursor_.fail("unsupported-format", "no GGUF file", 0);
    if ((version & 0xFFFFU) == 0 && version != 0)
      return cursor_.fail("gguf-version", "numbers are big-endian, expected little-endian", 4);
    if (version != 2 && version != 3)
      return cursor_.fail("gguf-version", fmt::format("version {}, expected 2 or 3", version), 4);
    if (!cursor_.number(tensors_) || !cursor_.number(metadata_)) return false;
    return check_count(tensors_, kLeastTensor, limits_.tensors, "tensors", "limit-tensors", 8) &&
           check_count(metadata_, kLeastMetadata, limits_.metadata, "metadata", "limit-metadata",
                       16);
  }

  bool check_count(std::uint64_t count, std::uint64_t least, std::uint64_t most, const char* what,
                   const char* limit, std::uint64_t offset) {
    if (count > cursor_.left() / least) {
      return cursor_.fail("gguf-count",
                          fmt::format("{} {}, {} bytes are left", count, what, cursor_.left()),
                          offset);
    }
    if (count <= most) return true;
    return cursor_.fail(limit, fmt::format("{} {}, at most {}", count, what, most), offset);
  }

  bool read_metadata() {
    std::unordered_set<std::string> keys;
    std::uint64_t left = limits_.metadata_bytes;
    for (std::uint64_t i = 0; i < metadata_; ++i) {
      TypedValue value;
      const std::uint64_t start = cursor_.offset();
      if (!cursor_.text(left, value.key)) return false;
      if (value.key.empty() || value.key.size() > kGgufKeyBytes || !is_ascii(value.key)) {
        return cursor_.fail("gguf-key",
                            fmt::format("a key of {} bytes, expected 1 to {} of ASCII",
                                        value.key.size(), kGgufKeyBytes),
                            start);
      }
      if (!keys.insert(value.key).second)
        return cursor_.fail("duplicate-key", fmt::format("'{}'", escape(value.key)), start);
      left -= value.key.size();
      if (!read_gguf_value(cursor_, left, value)) return false;
      left -= std::min<std::uint64_t>(left, value.bytes.size());
      if (value.key == kGgufAlignmentKey && !read_alignment(value, start)) return false;
      if (value.type == "STRING") content_.metadata.emplace_back(value.key, value.text);
      content_.typed.push_back(std::move(value));
    }
    return true;
  }

  bool read_alignment(const TypedValue& value, std::uint64_t start) {
    const auto number = gguf_integer(value);
    if (value.type != "UINT32" || !number || *number == 0 || (*number & (*number - 1)) != 0 ||
        *number > kMostAlignment) {
      return cursor_.fail("gguf-alignment",
                          fmt::format("{} {}, expected UINT32, a power of two from 1 to {}",
                                      value.type, value.text, kMostAlignment),
                          start);
    }
    alignment_ = *number;
    return true;
  }

  /// Other programs read these arrays by the types that they expect.
  bool check_tokenizer() {
    std::optional<std::uint64_t> count;
    for (const auto& [key, type] :
         {std::pair{kGgufTokens, "STRING[]"}, std::pair{kGgufScores, "FLOAT32[]"},
          std::pair{kGgufTokenTypes, "INT32[]"}}) {
      const TypedValue* value = find_typed(content_.typed, key);
      if (value == nullptr) continue;
      if (value->type != type) {
        return cursor_.fail("gguf-tokenizer",
                            fmt::format("'{}' is {}, expected {}", key, value->type, type),
                            cursor_.offset());
      }
      const auto own = gguf_array_count(*value);
      if (!count) count = own;
      if (own != count) {
        return cursor_.fail("gguf-tokenizer",
                            fmt::format("'{}' has {} elements, expected {}", key, *own, *count),
                            cursor_.offset());
      }
    }
    return true;
  }

  bool read_entries() {
    std::unordered_set<std::string> names;
    entries_.reserve(tensors_);
    for (std::uint64_t i = 0; i < tensors_; ++i) {
      Entry entry;
      entry.place = cursor_.offset();
      if (!read_entry(entry)) return false;
      if (!names.insert(entry.name).second)
        return fail("duplicate-tensor", "a second tensor of this name", entry);
      entries_.push_back(std::move(entry));
    }
    return true;
  }

  bool fail(const char* rule, std::string message, const Entry& entry) {
    return cursor_.fail(rule, std::move(message), entry.place, entry.name);
  }

  bool read_entry(Entry& entry) {
    std::uint64_t length = 0;
    if (!cursor_.number(length)) return false;
    if (length > cursor_.left()) {
      return fail("gguf-string",
                  fmt::format("a name of {} bytes, {} are left", length, cursor_.left()), entry);
    }
    if (length > limits_.name_bytes) {
      return fail("limit-name",
                  fmt::format("a name of {} bytes, at most {}", length, limits_.name_bytes), entry);
    }
    if (!cursor_.bytes(length, entry.name)) return false;
    if (!valid_utf8(entry.name)) return fail("not-utf8", "the tensor's name", entry);
    std::uint32_t rank = 0;
    if (!cursor_.number(rank)) return false;
    if (rank > kGgufRank)
      return fail("limit-rank", fmt::format("{} dimensions, at most {}", rank, kGgufRank), entry);
    for (std::uint32_t i = 0; i < rank; ++i) {
      std::uint64_t dimension = 0;
      if (!cursor_.number(dimension)) return false;
      if (dimension > kMostSize)
        return fail("bad-number", fmt::format("dimension {}", dimension), entry);
      entry.shape.insert(entry.shape.begin(), dimension);
    }
    std::uint32_t type = 0;
    if (!cursor_.number(type) || !cursor_.number(entry.offset)) return false;
    entry.type = find_ggml_type(type);
    if (type == kQ81) {
      return fail("gguf-type",
                  "type 9 is Q8_1, a type of intermediate results, with a size that differs "
                  "between programs; it is not read",
                  entry);
    }
    if (entry.type == nullptr)
      return fail("gguf-type", fmt::format("type {} is not one of ggml's types", type), entry);
    return measure(entry);
  }

  /// The bytes of a tensor from its shape and type.
  bool measure(Entry& entry) {
    const GgmlType& type = *entry.type;
    const auto count = element_count(entry.shape);
    if (!count || *count > kMostSize) return fail("shape-overflow", shape_text(entry.shape), entry);
    const std::uint64_t row = entry.shape.empty() ? 1 : entry.shape.back();
    if (row % type.block_elements != 0) {
      return fail("partial-block",
                  fmt::format("rows of {} elements, {} has blocks of {}", row, type.name,
                              type.block_elements),
                  entry);
    }
    const auto bytes = checked_multiply(*count / type.block_elements, type.block_bytes);
    if (!bytes || *bytes > kMostSize) return fail("shape-overflow", shape_text(entry.shape), entry);
    entry.bytes = *bytes;
    return true;
  }

  /// Where the data is: aligned, inside of the file, apart.
  bool place() {
    // Cannot overflow: the header lies inside of the file, whose size is below 2^63.
    content_.data_begin = round_up(cursor_.offset(), alignment_);
    for (const Entry& entry : entries_) {
      if (entry.offset % alignment_ != 0) {
        return fail("gguf-offset",
                    fmt::format("data at {}, no multiple of {}", entry.offset, alignment_), entry);
      }
      const auto begin = checked_add(content_.data_begin, entry.offset);
      const auto end = begin ? checked_add(*begin, entry.bytes) : std::nullopt;
      if (!end || *end > size_) {
        return fail("gguf-beyond",
                    fmt::format("{} bytes at {} of the data, the file has {}", entry.bytes,
                                entry.offset, size_ - std::min(size_, content_.data_begin)),
                    entry);
      }
    }
    std::ranges::stable_sort(entries_, {},
                             [](const Entry& e) { return std::pair(e.offset, e.bytes); });
    std::uint64_t end = 0;
    for (const Entry& entry : entries_) {
      if (entry.offset < end)
        return fail("overlap", "its data begin inside of another tensor", entry);
      end = entry.offset + entry.bytes;
    }
    for (Entry& entry : entries_) add(std::move(entry));
    return true;
  }

  void add(Entry entry) {
    const std::uint64_t begin = content_.data_begin + entry.offset;
    const std::uint64_t end = begin + entry.bytes;
    if (entry.type->dtype) {
      content_.tensors.push_back({.name = std::move(entry.name),
                                  .dtype = *entry.type->dtype,
                                  .shape = std::move(entry.shape),
                                  .begin = begin,
                                  .end = end});
    } else {
      content_.opaque.push_back({.name = std::move(entry.name),
                                 .type = std::string(entry.type->name),
                                 .shape = std::move(entry.shape),
                                 .begin = begin,
                                 .end = end});
    }
  }

  GgufCursor cursor_;
  std::uint64_t size_;
  const GgufLimits& limits_;
  std::uint64_t tensors_ = 0;
  std::uint64_t metadata_ = 0;
  std::uint64_t alignment_ = kGgufAlignment;
  std::vector<Entry> entries_;
  FileContent content_;
};

}  // namespace

Checked<FileContent> parse_gguf(const GgufRead& read, std::uint64_t size,
                                const GgufLimits& limits) {
  return Parser(read, size, limits).parse();
}

}  // namespace masque::store
