// The job of `embed-fix positions`: a checkpoint with another number of learned positions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "surgery/edit/edit_report.hpp"

namespace masque::surgery {

struct PositionsRequest : EditRequest {
  std::uint64_t positions = 0;  ///< usable ones
  std::string how;              ///< see parse_position_extension
  /// Rows in front of the first position; absent: as the family has them.
  std::optional<std::uint64_t> offset;
};

struct PositionsReport : EditReport {
  std::string tensor;
  DType dtype = DType::kF32;
  Shape before;
  Shape after;
  std::uint64_t offset = 0;
  std::uint64_t positions_before = 0;
};

/// Writes `in` with `request.positions` positions to `out`, a file to a file, a folder to a folder.
/// Updates the buffers of old files, config.json, and the limits of text length in the tokenizer
/// files. Rows are computed in double and rounded once. Memory: a few MiB a thread. Throws
/// UsageError (`how` cannot make that many positions) and InputError (no learned positions, rows
/// that would overflow, errors of write_edit); `out` is then unchanged.
PositionsReport resize_positions(const std::string& in, const std::string& out,
                                 const PositionsRequest& request);

}  // namespace masque::surgery
