// A filter's loop: lines from a stream, work on them by several threads, output in order, memory
// for a few pieces only.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/input/line_shard.hpp"

namespace masque {

/// Whole lines of the input. Every line ends with a line feed, but perhaps the very last. At least
/// kLinePadding readable bytes stand after `text`.
struct LinePiece {
  std::string_view text;         ///< a view that is valid during the call that gets the piece
  std::uint64_t first_line = 0;  ///< number of its first line in the stream, from 0
};
/// Bytes after the text of a LinePiece that may be read; what they hold means nothing.
inline constexpr std::size_t kLinePadding = 64;

/// A filter: its settings, and the functions that filter_lines calls.
struct LineFilter {
  int threads = 0;  ///< that work at the same time; ≤ 0: default_threads()
  /// Most bytes of a line without its line feed.
  std::uint64_t max_line = 64 << 20;
  std::uint64_t first_line = 0;  ///< number of the stream's first line
  /// Only this part of a regular file; line numbers are those of the whole file. UsageError for
  /// what cannot be cut, a pipe say.
  std::optional<Shard> shard = {};
  /// Gives the text of the input in place of a file: fills up to `size` bytes, and returns how
  /// many; 0 at the end. Without `shard`.
  std::function<std::size_t(char* out, std::size_t size)> read = {};
  /// Sees the first piece before any work begins, on the caller's thread.
  std::function<void(const LinePiece& first)> start = {};
  /// Makes the output of a piece. Called from several threads, at most once a piece.
  std::function<void(const LinePiece& piece, std::string& out)> work;
  /// Takes the outputs in the order of the input, on the caller's thread.
  std::function<void(std::string_view out)> sink;
};

/// Runs `filter` over the file `path`, or standard input for "-" (UsageError if that is a
/// terminal); where the filter has `read`, the path is only what messages call its bytes. A piece
/// has at most 256 KiB, or is one longer line; what the pieces are depends on neither the number of
/// threads nor how the bytes arrive. Returns the number of lines. Throws InputError "PATH: line N:
/// …", N being the line's number + 1, for a line beyond `max_line`, and what `work` throws, after
/// the output of earlier pieces and what it made of this one have been handed on; and as
/// TextSource::read().
std::uint64_t filter_lines(const std::string& path, const LineFilter& filter);

}  // namespace masque
