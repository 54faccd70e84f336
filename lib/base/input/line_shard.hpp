// Parts of a stream of lines, for work that is split over several runs.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace masque {

/// The `index`-th of `count` contiguous runs of a file's lines, from 1.
struct Shard {
  std::uint64_t index = 1;  ///< 1 to `count`
  std::uint64_t count = 1;  ///< number of shards, from 1
};

/// Reads a shard as users spell it: `text` is I/N as in "2/8", with 1 ≤ I ≤ N ≤ 10⁹. Throws
/// UsageError about the field "shard" for any other text.
Shard parse_shard(std::string_view text);

/// A run of bytes that begins and ends with whole lines.
struct LineSpan {
  std::uint64_t begin = 0;         ///< first byte
  std::uint64_t end = 0;           ///< one past the last byte
  std::uint64_t lines_before = 0;  ///< lines of the file or text in front of it
};

/// Returns where `shard` lies in the regular file open as `fd`, whose size is cut into `count`
/// equal parts: a shard begins at the first line start at or after the begin of its part. It may be
/// empty. Throws UsageError for a descriptor that is no regular file or what gzip or zstd packed,
/// InputError "NAME: …" (of `name`) if it cannot be read or is in another encoding than UTF-8
/// (EncodingCheck), and Interrupted. Cost: the bytes before the shard are read.
LineSpan find_shard(int fd, const std::string& name, const Shard& shard);

/// Returns the XXH3-128 digest of the whole regular file open as `fd`, wherever it stands. Throws
/// InputError "NAME: …" (of `name`) if it cannot be read, and Interrupted.
std::string digest_of_whole(int fd, const std::string& name);

/// Returns where `shard` lies in `text`, cut in the same way.
LineSpan find_shard(std::string_view text, const Shard& shard);

}  // namespace masque
