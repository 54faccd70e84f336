// Records from lines: JSON objects, plain ids, or text.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "records/record.hpp"

namespace masque::records {

/// Reads JSON records. Not thread-safe: one object for each thread.
class JsonRecordReader {
 public:
  /// `text_alone`: for records that are text; messages do not ask for ids.
  explicit JsonRecordReader(bool text_alone = false);
  JsonRecordReader(const JsonRecordReader&) = delete;
  JsonRecordReader& operator=(const JsonRecordReader&) = delete;
  ~JsonRecordReader();

  /// Reads one line, after which kLinePadding bytes must be readable, into `record`, whose other
  /// fields are views of the line, or of a copy that ends with the next read(). Returns what is
  /// wrong, or nothing. Lists with a value for each token must be as long as `ids`; a record
  /// without `ids` may have `text`.
  ///
  /// The names of Hugging Face are read as well: input_ids, position_ids and token_type_ids are
  /// ids, pos (Record::position_ids) and seg; tokens with a 0 in attention_mask are taken out, the
  /// others keep their positions, and Record::hidden has those in front of others. Both spellings
  /// of one field, a key that is given twice, or a mask of each kind, are wrong. Keys may be
  /// written with escapes. Lone surrogates ("\ud83d" alone) are read as U+FFFD, in what passes
  /// through, too.
  std::optional<std::string> read(std::string_view line, Record& record);

  /// The member "text" of the last record, unescaped, if it had no `ids`. Valid until the next
  /// read().
  const std::optional<std::string>& text() const;
  /// Number of lone surrogates in the last line.
  std::uint64_t lone_surrogates() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
  bool text_alone_;
};

/// Reads `line`, whole numbers from 0 below 2^31 between spaces or tabs, into the ids of `record`,
/// which is cleared first. Returns what is wrong, or nothing.
std::optional<std::string> read_ids(std::string_view line, Record& record);

}  // namespace masque::records
