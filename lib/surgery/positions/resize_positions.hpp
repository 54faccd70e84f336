// The job of `embed-fix positions`: a checkpoint with another number of learned positions.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "surgery/edit/checkpoint_edit.hpp"
#include "surgery/edit/edit_report.hpp"
#include "surgery/rows/embedding_table.hpp"
#include "tensor/table_rows.hpp"

namespace masque::surgery {

/// What a user asks of resize_positions().
struct PositionsRequest : EditRequest {
  std::uint64_t positions = 0;  ///< without the rows in front of the first one
  std::string how;              ///< see parse_position_extension
  /// Rows in front of the first position; absent: pad_token_id + 1 (of RoBERTa and families like
  /// it; 2 without a config), else 0.
  std::optional<std::uint64_t> offset;
};

/// What resize_positions() did, or would do with dry_run.
struct PositionsReport : EditReport {
  std::string tensor;         ///< the table of positions
  DType dtype = DType::kF32;  ///< of the table
  Shape before;               ///< [rows, hidden_size], with the rows in front of the first position
  Shape after;                ///< [rows, hidden_size], likewise
  std::uint64_t offset = 0;   ///< rows in front of the first position
  std::uint64_t positions_before = 0;  ///< rows before, without `offset`
};

/// Writes `in` with `request.positions` positions to `out`, a file to a file, a folder to a folder.
/// Updates the buffers of old files, config.json, and the limits of text length in the tokenizer
/// files. Rows are computed in double and rounded once. Memory: a few MiB a thread. Throws
/// UsageError (`how` cannot make that many positions) and InputError (no learned positions, rows
/// that would overflow, errors of write_edit); `out` is then unchanged.
PositionsReport resize_positions(const std::string& in, const std::string& out,
                                 const PositionsRequest& request);

// Buffers that old files store next to a table of positions, and limits of text length that depend
// on it.

/// Gives the buffers of `family` that the checkpoint of `edit` stores for `before` rows a length of
/// `after`. One of another shape, or of a type that cannot hold its numbers, stays, with a note in
/// `notes`. Reads the buffers. Throws InputError if one holds anything but what its kind says.
void resize_position_buffers(CheckpointEdit& edit, const model::FamilyNames& family,
                             std::uint64_t before, std::uint64_t after,
                             std::vector<std::string>& notes);

/// Gives the slots in the checkpoint of `edit` that an optimizer keeps next to `table`
/// (optimizer_slots) one row for each of `from`: the stored row of that number, or zeros for
/// kComputedRow.
void move_slots(CheckpointEdit& edit, const store::TensorInfo& table,
                std::vector<std::uint64_t> from);

/// Gives the slots next to `table` in the checkpoint of `edit` `after` rows: the first ones that
/// they have, then zeros.
void resize_slots(CheckpointEdit& edit, const store::TensorInfo& table, std::uint64_t after);

/// Updates the limits of text length in the tokenizer's files of a folder (model_max_length of
/// tokenizer_config.json, the truncation of tokenizer.json, max_seq_length of
/// sentence_bert_config.json) through `edit`; all numbers are positions. A limit of `before`, or
/// above `after` if that is the smaller number, becomes `after`. A limit below `after` stays, with
/// a note in `notes`. Throws InputError if one of the files is no JSON.
void resize_text_limits(CheckpointEdit& edit, std::uint64_t before, std::uint64_t after,
                        std::vector<std::string>& notes);

// Ways to make a table of positions longer or shorter.

/// A way with its argument. Immutable, thread-safe.
class PositionExtension {
 public:
  virtual ~PositionExtension() = default;
  /// One line: what it does, with author, year and identifier where it is published.
  virtual std::string_view about() const = 0;
  /// The fewest positions that it can make from a table of `rows` rows.
  virtual Index fewest(Index rows) const { return rows; }
  /// The most positions that it can make from a table of that many rows.
  virtual Index most(Index /*rows*/) const { return std::numeric_limits<Index>::max(); }
  /// Row `position` of the new table of `length` rows, as a weighted sum of at most three rows of
  /// the old table of `rows` rows. Positions and rows count from 0, without those before the first
  /// position.
  virtual TableRows row(Index position, Index rows, Index length) const = 0;
};

/// The way that `text` names: "truncate", "hierarchical", "hierarchical:0.3". Throws UsageError
/// that names what is possible, and for an argument that is no number or that the way refuses.
std::unique_ptr<const PositionExtension> parse_position_extension(std::string_view text);

/// A way: a row of a list.
struct PositionExtensionInfo {
  std::string_view name;      ///< "hierarchical"
  std::string_view argument;  ///< its name in messages; empty: takes none
  /// Makes the way; `argument` is absent if the user gave none. Throws UsageError for a bad one.
  std::unique_ptr<const PositionExtension> (*make)(std::optional<double> argument);
};

/// All of them, sorted by name.
std::span<const PositionExtensionInfo> position_extensions();

/// "hierarchical[:ALPHA], interpolate, …".
std::string position_extension_spellings();

}  // namespace masque::surgery
