// LevelDB tables, the container of a bundle's index: written as TensorFlow writes them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace masque::store {

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

}  // namespace masque::store
