// Bytes of files and streams as text: the one way by which every tool reads text.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/input/line_shard.hpp"
#include "base/input/unpack.hpp"
#include "base/string/text_encoding.hpp"

namespace masque {

/// The text of a descriptor, read once from its beginning to its end: what gzip or zstd packed is
/// unpacked, a byte-order mark of UTF-8 at the begin is left out. Movable.
class TextSource {
 public:
  /// Reads from where `fd` stands; the descriptor stays the caller's and must stay open. `name` is
  /// what messages call it.
  TextSource(int fd, std::string name);

  /// Reads only the part `shard`; returns how many lines stand before it. Before the first read().
  /// Throws as find_shard does.
  std::uint64_t cut(const Shard& shard);
  /// Of a part that does not begin with the file begin_of_text() of the file; else empty.
  std::string begin_of_file() const;

  /// Reads up to `size` bytes into `out`, as they come, and returns how many; 0 at the end only (or
  /// for size 0). Nothing is given before EncodingCheck knows that it is text. Waits for a
  /// descriptor that does not block. Throws InputError if the descriptor cannot be read, what is
  /// packed is damaged or cut off, the text is in another encoding (EncodingCheck) or of another
  /// kind (refuse_other_kind); Interrupted.
  std::size_t read(char* out, std::size_t size);
  /// How the input is packed; kNone before the first read().
  Packing packing() const { return packing_; }
  /// Whether read() would probably find something at once.
  bool ready() const;

 private:
  void begin();
  std::size_t read_descriptor(char* out, std::size_t size);
  std::size_t read_unpacked(char* out, std::size_t size);
  void look(std::string_view bytes);

  int fd_;
  std::string name_;
  std::string block_;                   ///< read and not used
  std::size_t used_ = 0;                ///< of block_
  std::unique_ptr<Unpacker> unpacker_;  ///< nullptr: nothing is packed
  Packing packing_ = Packing::kNone;
  std::string first_;  ///< of the text, read to look for a mark
  std::string held_;   ///< read after bytes whose encoding was not yet known
  std::string kind_;   ///< the first bytes, by which other kinds are known
  EncodingCheck encoding_;
  std::optional<std::uint64_t> left_;  ///< bytes of the shard
  bool begun_ = false;
  bool at_begin_ = true;  ///< of the file, not at that of a later shard
  bool ended_ = false;
};

/// Returns the whole lines within the first 64 KiB, or the first 64 KiB of a longer line, of the
/// regular file open as `fd`, which messages call `name` and nothing has packed, without a
/// byte-order mark. Moves nothing. Throws InputError if it cannot be read.
std::string begin_of_text(int fd, const std::string& name);

/// Returns how the regular file open as `fd`, which messages call `name`, is packed; of anything
/// else kNone. Reads its first bytes and moves nothing. Throws InputError if it cannot be read.
Packing packing_of_file(int fd, const std::string& name);

/// Returns the bytes of the file or pipe `path`, or of standard input for "-", whatever they are:
/// for formats that need not be text. At most `limit` bytes. Throws as read_text() otherwise.
std::string read_bytes(const std::string& path, std::uint64_t limit);

}  // namespace masque
