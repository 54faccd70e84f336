// The job of `embed-fix positions`: a checkpoint with another number of learned positions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "surgery/edit/edit_report.hpp"

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

}  // namespace masque::surgery
