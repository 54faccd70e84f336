// LevelDB's tables: sorted keys with values, the container of a TensorFlow checkpoint's index.
//
//   blocks      entries (below), then u8 kind (0 raw, 1 Snappy), u32 masked CRC-32C of all of it
//   footer      48 bytes: handle of the metaindex block, handle of the index block (a handle is two
//               varints, offset and size without kind and CRC), zeros up to byte 40, magic
//   a block     entries, u32 restarts[n], u32 n
//   an entry    varints shared, unshared, length of the value; unshared bytes of the key; value.
//               The key begins with `shared` bytes of the one before it; at a restart with none
//
// The index block has one entry for each block of data, in order: a key from the last one of that
// block on and below the first of the next, and the block's handle.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/file/file.hpp"
#include "base/types.hpp"
#include "store/violation.hpp"

namespace masque::store {

/// A key and what belongs to it.
struct TableEntry {
  std::string key;           ///< bytes; keys rise by them
  std::string value;         ///< bytes
  std::uint64_t offset = 0;  ///< byte of the file: of the entry, or of the packed block it is in
};

/// Whether the sums of blocks are compared. kIgnored is for tests that change bytes.
enum class TableSums { kCompared, kIgnored };

/// Limits on what a table may make us hold in memory.
struct TableLimits {
  std::uint64_t block_bytes = 64 << 20;      ///< of an unpacked block
  std::uint64_t key_bytes = 65'536;          ///< of one key
  std::uint64_t entries = 1'000'000;         ///< in the file
  std::uint64_t expanded_bytes = 512 << 20;  ///< of all keys and values
};

/// Whether `file` ends as a table does. Throws InputError if it cannot be read.
bool is_table(const InputFile& file);

/// Every entry of the table whose bytes are `file`, in key order, within `limits`; `sums` says
/// whether checksums are compared. Rules: "table-footer", "table-handle", "table-crc",
/// "table-kind", "table-snappy", "table-block", "table-order", "limit-block", "limit-name",
/// "limit-tensors", "limit-expanded". Cost O(bytes), unpacked.
Checked<std::vector<TableEntry>> read_leveldb_table(Bytes file,
                                                    TableSums sums = TableSums::kCompared,
                                                    const TableLimits& limits = {});

// New tables, as TensorFlow writes them.

/// A table in memory: sorted keys with their values in blocks of about 256 KiB, not compressed.
/// Memory: the table's bytes.
class LevelDbTableWriter {
 public:
  /// Adds the entry of `key` and `value`. A MASQUE_CHECK: the key is after the last one (by its
  /// bytes).
  void add(std::string_view key, std::string_view value);
  /// The whole file. Called once, in the end.
  std::string finish();

 private:
  /// Entries whose keys leave out what they share with the one before, but for every `interval`-th.
  class Block {
   public:
    explicit Block(std::size_t interval) : interval_(interval) {}
    void add(std::string_view key, std::string_view value);
    std::size_t size() const { return bytes_.size() + 4 * restarts_.size() + 4; }
    bool empty() const { return bytes_.empty(); }
    /// Its bytes; it is empty then.
    std::string finish();

   private:
    std::size_t interval_;
    std::size_t since_restart_ = 0;
    std::string bytes_;
    std::string last_key_;
    std::vector<std::uint32_t> restarts_{0};
  };

  /// Appends a block with its checksum: where it is.
  std::string write(Block& block);
  /// The index's entry for the block that was written last, under a key of its own.
  void note_block(const std::string& key);

  std::string file_;
  Block data_{16};
  Block index_{1};
  std::string last_key_;
  std::string pending_;  ///< handle of the block that was written last
  bool any_ = false;
};

// Snappy, as blocks of tables are packed.

/// The bytes that the Snappy stream `packed` (without frames) stands for; nothing if it is none:
/// cut off, a copy of what is not there yet, another length than announced, or one that so few
/// bytes cannot stand for (a copy of 3 bytes makes at most 64). Memory: the announced length, once
/// that is known to be possible.
std::optional<std::string> unpack_snappy(std::string_view packed);

}  // namespace masque::store
