// Parts of a stream of lines, for work that is split over several runs.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace masque {

/// The `index`-th of `count` contiguous runs of a file's lines, from 1.
struct Shard {
  std::uint64_t index = 1;
  std::uint64_t count = 1;
};

/// "2/8". Throws UsageError about `shard`.
Shard parse_shard(std::string_view text);

/// A run of bytes that begins and ends with whole lines.
struct LineSpan {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  std::uint64_t lines_before = 0;
};

/// Where a shard of a regular file lies: each of the N parts begins at the first line start at or
/// after its N-th of the bytes. Throws UsageError for a descriptor that is no regular file,
/// InputError "name: …" if it cannot be read. Cost: the bytes before the shard are read.
LineSpan find_shard(int fd, const std::string& name, const Shard& shard);

/// The same for a text in memory.
LineSpan find_shard(std::string_view text, const Shard& shard);

}  // namespace masque
