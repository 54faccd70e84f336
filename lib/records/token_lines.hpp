// A token folder as lines of ids.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/line_shard.hpp"
#include "records/token_folder.hpp"

namespace masque::records {

/// Makes room in `out` for the numbers of `count` ids where they are many: room that is not written
/// to takes no memory, and a text that grows is there twice for a moment.
void reserve_ids(std::string& out, std::size_t count);
/// Appends `ids` to `out` as numbers with `between` between them.
void append_ids(std::string& out, std::span<const TokenId> ids, char between);

/// The sequences of a token folder, or of a part of it, as bytes of lines: numbers between spaces.
/// For one thread.
class TokenLines {
 public:
  /// The sequences of `shard` of `folder`, which is cut into parts of equal numbers of sequences. A
  /// line has at most `max_line` bytes.
  TokenLines(std::shared_ptr<const TokenFolder> folder, const Shard& shard, std::uint64_t max_line);

  /// Number of the next sequence in the folder, from 0.
  Index sequence() const { return sequence_; }
  /// Fills up to `size` bytes of `out` with what comes next, and returns how many; 0 at the end
  /// only. Throws as TokenFolder::read(), and InputError for a line that must be longer.
  std::size_t read(char* out, std::size_t size);

 private:
  Index part(std::uint64_t index, const Shard& shard) const;

  std::shared_ptr<const TokenFolder> folder_;
  Index sequence_, end_;
  std::uint64_t max_line_;
  std::vector<TokenId> ids_;
  std::string text_;
  std::size_t used_ = 0;  ///< bytes of it that were read
};

}  // namespace masque::records
