// Streams of records: read, corrupted by several threads, written in order.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/line_filter.hpp"
#include "records/corruption.hpp"
#include "records/undo.hpp"

namespace masque::records {

/// How the lines of a stream are to be read.
enum class LineFormat {
  kAuto,  ///< by the first line that is not empty: '{' JSON, digits and spaces ids, else text
  kText,
  kIds,
  kJson,
};

/// Turns text into ids, for one thread at a time.
using EncodeFunction = std::function<void(std::string_view text, std::vector<TokenId>& ids)>;

struct RecordFilter {
  std::string input = "-";
  LineFormat format = LineFormat::kAuto;
  /// Records are text that stays text: lines are text or JSON with `text` and without ids.
  bool text = false;
  /// Makes an encoder for one thread; absent: text that is to be ids is an error.
  std::function<EncodeFunction()> make_encoder = {};
  int threads = 0;
  std::uint64_t first_record = 0;  ///< number of the first line
  std::optional<Shard> shard = {};
  std::uint64_t max_line = 64 << 20;
  std::uint64_t epochs = 1;  ///< versions of each record, one after the other
  std::uint64_t copies = 1;  ///< how often each version is written
  bool strict = false;       ///< the first bad record ends the stream with an InputError
  TokenTable tokens = {};    ///< ids at or beyond `size` are bad, if it is known
  /// Takes the output in order.
  std::function<void(std::string_view out)> sink = {};
  /// Appends a record to the output; absent: as JSON. Called from several threads.
  std::function<void(const Record& record, std::string& out)> print = {};
  /// Gets every record before corruption; called from several threads.
  std::function<void(const Record& record)> inspect = {};
};

/// A line that was skipped.
struct BadRecord {
  std::uint64_t line = 0;  ///< from 1
  std::string message;
};

struct FilterResult {
  Tally tally;
  std::uint64_t bad = 0;
  std::vector<BadRecord> first_bad;  ///< the first few
};

/// Applies a corruption (nullptr: none) to every record and prints it; lines without a
/// record (empty ones) are passed over, but counted. The output is the same for any number of
/// threads, and for parts of the input with their first record's number.
FilterResult filter_records(const RecordFilter& filter, const Corruption* corruption);

/// Calls `use` for every good record, one after the other, on the caller's thread; what it appends
/// to `out` goes to the sink.
FilterResult walk_records(const RecordFilter& filter,
                          const std::function<void(Record& record, std::string& out)>& use);

}  // namespace masque::records
