#include "store/tensorflow/leveldb_table.hpp"

#include <snappy.h>

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/checked.hpp"
#include "base/digest/crc32c.hpp"
#include "base/error.hpp"
#include "base/file/file.hpp"
#include "store/tensorflow/wire.hpp"

namespace masque::store {

namespace {

constexpr std::size_t kBlockBytes = 256 << 10;
constexpr unsigned kLastByte = 0xFF;

std::size_t shared_bytes(std::string_view a, std::string_view b) {
  return static_cast<std::size_t>(std::ranges::mismatch(a, b).in1 - a.begin());
}

unsigned byte_at(std::string_view text, std::size_t at) {
  return static_cast<unsigned char>(text[at]);
}

std::string cut_and_raised(std::string_view key, std::size_t at) {
  std::string out(key.substr(0, at + 1));
  out.back() = static_cast<char>(byte_at(key, at) + 1);
  return out;
}

/// A short key from `before` on and in front of `after`, as LevelDB picks it.
std::string separator(std::string_view before, std::string_view after) {
  const std::size_t at = shared_bytes(before, after);
  const bool inside = at < before.size() && at < after.size();
  if (!inside || byte_at(before, at) + 1 >= byte_at(after, at)) return std::string(before);
  return cut_and_raised(before, at);
}

/// A short key not in front of `key`.
std::string successor(std::string_view key) {
  for (std::size_t i = 0; i < key.size(); ++i) {
    if (byte_at(key, i) != kLastByte) return cut_and_raised(key, i);
  }
  return std::string(key);
}

constexpr std::string_view kMagic = "\x57\xFB\x80\x8B\x24\x75\x47\xDB";
constexpr std::uint64_t kFooterBytes = 48;
constexpr std::uint64_t kHandlesBytes = 40;
constexpr std::uint64_t kTrailerBytes = 5;

struct Handle {
  std::uint64_t offset = 0;
  std::uint64_t size = 0;

  std::uint64_t end() const { return offset + size + kTrailerBytes; }
};

std::uint32_t u32_at(std::string_view text, std::size_t at) {
  std::uint32_t value = 0;
  for (std::size_t i = 4; i-- > 0;) value = value << 8 | static_cast<unsigned char>(text[at + i]);
  return value;
}

class TableReader {
 public:
  TableReader(std::string_view file, TableSums sums, const TableLimits& limits)
      : file_(file), sums_(sums), limits_(limits) {}

  Checked<std::vector<TableEntry>> read() {
    if (!read_all()) return std::move(*violation_);
    return std::move(entries_);
  }

 private:
  bool fail(const char* rule, std::uint64_t offset, std::string message) {
    violation_ = Violation{rule, std::move(message), "", offset};
    return false;
  }

  bool read_all() {
    if (file_.size() < kFooterBytes || !file_.ends_with(kMagic)) {
      return fail("table-footer", file_.size(),
                  "does not end as a table does: cut off, or another kind of file");
    }
    const std::size_t footer = file_.size() - kFooterBytes;
    const std::string_view handles = file_.substr(footer, kHandlesBytes);
    std::size_t at = 0;
    const auto meta = read_handle(handles, at);
    const auto index = meta ? read_handle(handles, at) : std::nullopt;
    if (!index || handles.find_first_not_of('\0', at) != std::string_view::npos)
      return fail("table-footer", footer, "the footer holds no two handles");
    std::vector<TableEntry> ignored;
    std::vector<TableEntry> blocks;
    if (!read_block(*meta, ignored) || !read_block(*index, blocks)) return false;
    for (const TableEntry& block : blocks) {
      std::size_t after = 0;
      const auto handle = read_handle(block.value, after);
      if (!handle || after != block.value.size())
        return fail("table-handle", block.offset, "the index holds something else than a handle");
      const std::size_t before = entries_.size();
      if (!read_block(*handle, entries_) || !check_order(before, block)) return false;
      last_separator_ = block.key;
    }
    return check_apart();
  }

  static std::optional<Handle> read_handle(std::string_view text, std::size_t& at) {
    const auto offset = read_varint(text, at);
    const auto size = offset ? read_varint(text, at) : std::nullopt;
    if (!size) return std::nullopt;
    return Handle{*offset, *size};
  }

  /// Keys of a block rise, and lie between what the index says of it and of the one before.
  bool check_order(std::size_t before, const TableEntry& block) {
    if (before == entries_.size())
      return fail("table-order", block.offset, "a block of data without entries");
    const TableEntry& first = entries_[before];
    if (before > 0 && first.key <= last_separator_)
      return fail("table-order", first.offset, "a key before the end of the previous block");
    if (entries_.back().key > block.key)
      return fail("table-order", block.offset, "a block's keys exceed the key in the index");
    return true;
  }

  /// No byte belongs to two blocks.
  bool check_apart() {
    std::ranges::sort(handles_, {}, &Handle::offset);
    for (std::size_t i = 1; i < handles_.size(); ++i) {
      if (handles_[i].offset < handles_[i - 1].end())
        return fail("table-handle", handles_[i].offset, "two blocks overlap");
    }
    return true;
  }

  bool read_block(const Handle& handle, std::vector<TableEntry>& out) {
    const std::size_t footer = file_.size() - kFooterBytes;
    const auto end = checked_add(handle.size, kTrailerBytes);
    const auto last = end ? checked_add(*end, handle.offset) : std::nullopt;
    if (!last || *last > footer) {
      return fail("table-handle", footer,
                  fmt::format("a block of {} bytes at byte {} of {}", handle.size, handle.offset,
                              file_.size()));
    }
    handles_.push_back(handle);
    const std::string_view stored = file_.substr(handle.offset, handle.size);
    const char kind = file_[handle.offset + handle.size];
    if (sums_ == TableSums::kCompared) {
      const Bytes summed = as_bytes(file_.substr(handle.offset, handle.size + 1));
      if (masked_crc32c(crc32c(summed)) != u32_at(file_, handle.offset + handle.size + 1))
        return fail("table-crc", handle.offset, "a block differs from its CRC-32C");
    }
    if (kind == 0) return read_entries(stored, handle.offset, true, out);
    if (kind != 1) {
      return fail("table-kind", handle.offset + handle.size,
                  fmt::format("a block of kind {}, expected 0 (raw) or 1 (Snappy)",
                              static_cast<unsigned char>(kind)));
    }
    std::size_t at = 0;
    const auto announced = read_varint(stored, at);
    if (announced.value_or(0) > limits_.block_bytes) return too_large(handle.offset);
    const auto unpacked = unpack_snappy(stored);
    if (!unpacked) return fail("table-snappy", handle.offset, "a block is not packed by Snappy");
    return read_entries(*unpacked, handle.offset, false, out);
  }

  bool too_large(std::uint64_t offset) {
    return fail("limit-block", offset, fmt::format("a block above {} bytes", limits_.block_bytes));
  }

  /// The entries of a block. `begin` is its place in the file; `raw`: it lies there as it is.
  bool read_entries(std::string_view block, std::uint64_t begin, bool raw,
                    std::vector<TableEntry>& out) {
    if (block.size() > limits_.block_bytes) return too_large(begin);
    const std::size_t count = block.size() < 4 ? 0 : u32_at(block, block.size() - 4);
    if (count == 0 || count > block.size() / 4 - 1)
      return fail("table-block", begin, "a block without its restarts");
    const std::size_t end = block.size() - 4 - 4 * count;
    std::size_t restart = 0;
    std::string key;
    for (std::size_t at = 0; at < end;) {
      const std::uint64_t offset = begin + (raw ? at : 0);
      const bool at_restart = restart < count && u32_at(block, end + 4 * restart) == at;
      if (at_restart) ++restart;
      const bool first = at == 0;
      std::string_view value;
      std::size_t shared = 0;
      if (!read_entry(block.substr(0, end), at, offset, key, value, shared)) return false;
      if ((first && !at_restart) || (at_restart && shared != 0))
        return fail("table-block", offset, "restarts are not at complete keys");
      if (!append(out, key, value, offset, first)) return false;
    }
    const bool all = end == 0 ? count == 1 && u32_at(block, 0) == 0 : restart == count;
    return all || fail("table-block", begin, "restarts are not at complete keys");
  }

  /// One entry; `key` is the one before and becomes its own.
  bool read_entry(std::string_view entries, std::size_t& at, std::uint64_t offset, std::string& key,
                  std::string_view& value, std::size_t& shared) {
    const auto kept = read_varint(entries, at);
    const auto added = kept ? read_varint(entries, at) : std::nullopt;
    const auto length = added ? read_varint(entries, at) : std::nullopt;
    if (!length || *kept > key.size() || *added > entries.size() - at ||
        *length > entries.size() - at - *added)
      return fail("table-block", offset, "an entry that goes beyond its block");
    shared = static_cast<std::size_t>(*kept);
    if (shared + *added > limits_.key_bytes) {
      return fail("limit-name", offset,
                  fmt::format("a name of {} bytes, at most {} allowed", shared + *added,
                              limits_.key_bytes));
    }
    key.resize(shared);
    key.append(entries, at, *added);
    value = entries.substr(at + *added, *length);
    at += *added + *length;
    return true;
  }

  bool append(std::vector<TableEntry>& out, const std::string& key, std::string_view value,
              std::uint64_t offset, bool first_of_block) {
    if (!first_of_block && key <= out.back().key)
      return fail("table-order", offset, "a key that is not above the one before it");
    expanded_ += key.size() + value.size();
    if (expanded_ > limits_.expanded_bytes) {
      return fail("limit-expanded", offset,
                  fmt::format("names and values above {} bytes", limits_.expanded_bytes));
    }
    if (out.size() == limits_.entries)
      return fail("limit-tensors", offset, fmt::format("more than {} entries", limits_.entries));
    out.push_back({key, std::string(value), offset});
    return true;
  }

  std::string_view file_;
  TableSums sums_;
  TableLimits limits_;
  std::optional<Violation> violation_;
  std::vector<TableEntry> entries_;
  std::vector<Handle> handles_;
  std::string last_separator_;
  std::uint64_t expanded_ = 0;
};

}  // namespace

bool is_table(const InputFile& file) {
  if (file.size() < kFooterBytes) return false;
  std::array<char, kMagic.size()> last{};
  file.read(file.size() - last.size(), std::as_writable_bytes(std::span(last)));
  return std::string_view(last.data(), last.size()) == kMagic;
}

Checked<std::vector<TableEntry>> read_leveldb_table(Bytes file, TableSums sums,
                                                    const TableLimits& limits) {
  const std::string_view text(reinterpret_cast<const char*>(file.data()), file.size());
  return TableReader(text, sums, limits).read();
}

void LevelDbTableWriter::Block::add(std::string_view key, std::string_view value) {
  std::size_t shared = 0;
  if (since_restart_ < interval_) {
    shared = shared_bytes(last_key_, key);
  } else {
    restarts_.push_back(static_cast<std::uint32_t>(bytes_.size()));
    since_restart_ = 0;
  }
  wire::put_varint(bytes_, shared);
  wire::put_varint(bytes_, key.size() - shared);
  wire::put_varint(bytes_, value.size());
  bytes_ += key.substr(shared);
  bytes_ += value;
  last_key_ = key;
  ++since_restart_;
}

std::string LevelDbTableWriter::Block::finish() {
  for (const std::uint32_t restart : restarts_) wire::put_u32(bytes_, restart);
  wire::put_u32(bytes_, static_cast<std::uint32_t>(restarts_.size()));
  std::string out = std::move(bytes_);
  *this = Block(interval_);
  return out;
}

std::string LevelDbTableWriter::write(Block& block) {
  std::string handle;
  wire::put_varint(handle, file_.size());
  std::string bytes = block.finish();
  wire::put_varint(handle, bytes.size());
  bytes += '\0';  // not compressed
  file_ += bytes;
  wire::put_u32(file_, masked_crc32c(crc32c(as_bytes(bytes))));
  return handle;
}

void LevelDbTableWriter::note_block(const std::string& key) {
  if (pending_.empty()) return;
  index_.add(key, pending_);
  pending_.clear();
}

void LevelDbTableWriter::add(std::string_view key, std::string_view value) {
  MASQUE_CHECK(!any_ || last_key_ < key);
  any_ = true;
  if (!pending_.empty()) note_block(separator(last_key_, key));
  last_key_ = key;
  data_.add(key, value);
  if (data_.size() >= kBlockBytes) pending_ = write(data_);
}

std::string LevelDbTableWriter::finish() {
  if (!data_.empty()) pending_ = write(data_);
  Block meta(1);
  std::string handles = write(meta);
  note_block(successor(last_key_));
  handles += write(index_);
  handles.resize(kHandlesBytes, '\0');
  file_ += handles;
  file_ += kMagic;
  return std::move(file_);
}

namespace {

constexpr std::size_t kMostGrowth = 22;  // 64 bytes from a copy of 3

}  // namespace

std::optional<std::string> unpack_snappy(std::string_view packed) {
  // The library believes what is announced; memory is allocated when it is known to be possible.
  std::size_t announced = 0;
  if (!snappy::GetUncompressedLength(packed.data(), packed.size(), &announced)) return std::nullopt;
  if (announced / kMostGrowth > packed.size()) return std::nullopt;
  std::string out(announced, '\0');
  if (!snappy::RawUncompress(packed.data(), packed.size(), out.data())) return std::nullopt;
  return out;
}

}  // namespace masque::store
