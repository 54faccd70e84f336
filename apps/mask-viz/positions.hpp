// The lengths of a mask and the names of its positions, as commands take them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/command.hpp"
#include "mask/expression.hpp"

namespace masque::mask_viz {

// A record as the mask argument: "-" is the first record on standard input.

/// The mask of a record, with its labels.
struct RecordMask {
  std::string expression;           ///< its `mask`; else by `doc` or `seg`, else "full"
  Index length = 0;                 ///< number of ids
  std::vector<std::string> labels;  ///< its tokens, or ids without a tokenizer
  std::vector<Index> labelled;      ///< positions with a label
};

/// The first record on standard input if `argument` is "-", else nothing. Throws InputError.
/// Says on `session` what is odd about the tokenizer.
std::optional<RecordMask> read_record_mask(const std::string& argument,
                                           const std::optional<std::string>& tokenizer,
                                           cli::Session& session);

// The options.

struct PositionOptions {
  std::optional<Index> length;
  std::optional<Index> keys;
  std::optional<Index> offset;
  std::optional<std::string> tokens;
  std::optional<std::string> text;
  std::optional<std::string> tokenizer;  ///< of a record
};

/// -n and, for masks that need not be square, --keys and --offset.
void add_lengths(cli::Command& command, PositionOptions& options, bool square = false);
/// --tokens and --text.
void add_labels(cli::Command& command, PositionOptions& options);

struct Positions {
  mask::Lengths lengths;
  Index offset = 0;                 ///< position of the first query
  std::vector<std::string> labels;  ///< none, or one for each position

  /// The mask of these queries and keys.
  mask::Mask bind(const mask::MaskExpression& mask) const;
};

/// --tokenizer, for commands whose mask may be a record.
void add_record(cli::Command& command, PositionOptions& options);

/// Positions by the options, or those of a record if there is one. Without -n the length is the
/// number of labels, or the length that an expression fixes. Throws UsageError if there is no
/// length or two lengths differ. Says on `session` what is odd about the tokenizer.
Positions positions_of(const PositionOptions& options,
                       const std::vector<mask::MaskExpression>& masks, cli::Session& session,
                       const std::optional<RecordMask>& record = std::nullopt);

}  // namespace masque::mask_viz
