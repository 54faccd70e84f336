// Streams of records: read, corrupted by several threads, written in order.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/input/line_filter.hpp"
#include "base/string/utf8.hpp"
#include "records/corruption.hpp"
#include "records/undo.hpp"

namespace masque::records {

/// How the lines of a stream are to be read.
enum class LineFormat {
  /// By the first line that is not empty: '{' JSON, digits and spaces ids, else text.
  /// A JSON array is an InputError, of kJson, too.
  kAuto,
  kText,  ///< a text, bytes that are not UTF-8 replaced by U+FFFD
  kIds,   ///< numbers between spaces or tabs
  kJson,  ///< a JSON object, as JsonRecordReader reads it
};

/// Turns text into ids, for one thread at a time.
using EncodeFunction = std::function<void(std::string_view text, std::vector<TokenId>& ids)>;

/// What filter_records and walk_records read, and what they do with it.
struct RecordFilter {
  std::string input = "-";                ///< a path; "-": standard input
  LineFormat format = LineFormat::kAuto;  ///< of all lines
  /// Records are text that stays text: lines are text or JSON with `text` and without ids.
  bool text = false;
  /// Makes an encoder for one thread; absent: text that is to be ids is an error.
  std::function<EncodeFunction()> make_encoder = {};
  int threads = 0;                    ///< 0: all processors; of filter_records
  std::uint64_t first_record = 0;     ///< number of the first line
  std::optional<Shard> shard = {};    ///< only this part of a regular file
  std::uint64_t max_line = 64 << 20;  ///< bytes; a longer line is an InputError
  std::uint64_t epochs = 1;           ///< versions of each record, one after the other
  std::uint64_t copies = 1;           ///< how often each version is written
  bool strict = false;                ///< the first bad record ends the stream with an InputError
  TokenTable tokens = {};             ///< ids at or beyond `size` are bad, if it is known
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
  std::string message;     ///< what is wrong with it
};

/// What a stream had.
struct FilterResult {
  Tally tally;                       ///< of the good records
  std::uint64_t bad = 0;             ///< number of lines that were skipped
  std::vector<BadRecord> first_bad;  ///< the first ten of them
  RepairedLines repaired;            ///< of text: what was not UTF-8
  RepairedLines surrogates;          ///< of JSON: lone surrogates, which became U+FFFD
};

/// Applies `corruption` (nullptr: none) to every record of `filter` and prints it; lines without a
/// record (empty ones) are passed over, but counted. A record that is bad, or that the corruption
/// refuses, is skipped; with `strict` it is an InputError "path: line N: …". Throws UsageError for
/// a first_record without a format, and as filter_lines does. The output is the same for any number
/// of threads, and for parts of the input with their first record's number.
FilterResult filter_records(const RecordFilter& filter, const Corruption* corruption);

/// Calls `use` for every good record of `filter`, one after the other, on the caller's thread; what
/// it appends to `out` goes to the sink. A record for which `use` throws InputError is bad, but
/// counted in the tally. Throws as filter_records; epochs, copies, print and inspect are not read.
FilterResult walk_records(const RecordFilter& filter,
                          const std::function<void(Record& record, std::string& out)>& use);

}  // namespace masque::records
