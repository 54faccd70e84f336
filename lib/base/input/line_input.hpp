// Lines of a stream, many at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/input/line_shard.hpp"
#include "base/input/text_source.hpp"
#include "base/json/json_text.hpp"

namespace masque {

/// Whole lines of a stream, each with its line feed; the last one of the stream may lack it.
struct LineBatch {
  std::string text;              ///< the lines, one behind the other
  std::uint64_t first_line = 1;  ///< number of the first line in the stream, from 1
};

/// Reads lines from a descriptor: a few hundred kilobytes at a time, or what is there if that is
/// less. Lines end at line feeds and nowhere else. What is packed is unpacked, as TextSource does.
class LineInput {
 public:
  /// Reads from where `fd` stands; the descriptor stays the caller's and must stay open. `name` is
  /// what messages call the stream, `max_line` the most bytes of a line without its line feed, and
  /// `field` the field that sets it; empty: none does.
  LineInput(int fd, std::string name, std::uint64_t max_line, std::string field = "max_line");

  /// Reads only the part `shard`; lines keep their numbers in the whole file. Before the first
  /// read(). Throws as find_shard does.
  void cut(const Shard& shard);
  /// From now on read() refuses an input that is JSON (JsonDetector); the message ends with
  /// `advice`: what to do. Before the first read(). Not for inputs that are to be JSON.
  void refuse_json(std::string advice);

  /// From now on read() leaves out lines of more than `max_line` bytes, and calls `tell` with the
  /// number of each and what is wrong with it. Memory: `max_line` bytes. Before the first read().
  void leave_out_long(std::function<void(std::uint64_t line, const std::string& problem)> tell);

  /// Puts the next lines into `batch`, whose memory it uses again; false at the end. Throws
  /// InputError if the stream cannot be read, or a line has more than `max_line` bytes (named by
  /// its number; the lines before it come first) and is not left out, and as TextSource::read().
  bool read(LineBatch& batch);
  /// Whether read() would find something at once.
  bool ready() const;

 private:
  void fill(LineBatch& batch);
  bool drop_long(LineBatch& batch);
  void skip_to_line_end();
  void check_kind(std::string_view lines);

  TextSource source_;
  std::string name_;
  std::uint64_t max_line_;
  std::string field_;
  std::function<void(std::uint64_t line, const std::string& problem)> tell_;
  std::string rest_;
  std::uint64_t next_line_ = 1;
  std::optional<JsonDetector> json_;  ///< none: JSON may come, or it is known that none does
  std::string advice_;
  bool ended_ = false;
  bool begun_ = false;
};

}  // namespace masque
