// A record as the mask argument: "-" is the first record on standard input.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "mask/expression.hpp"

namespace masque::mask_viz {

/// The mask of a record, with its labels.
struct RecordMask {
  std::string expression;           ///< its `mask`; else by `doc` or `seg`, else "full"
  Index length = 0;                 ///< number of ids
  std::vector<std::string> labels;  ///< its tokens, or ids without a tokenizer
  std::vector<Index> labelled;      ///< positions with a label
};

/// The first record on standard input if `argument` is "-", else nothing. Throws InputError.
std::optional<RecordMask> read_record_mask(const std::string& argument,
                                           const std::optional<std::string>& tokenizer);

}  // namespace masque::mask_viz
