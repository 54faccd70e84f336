// The job of `embed-fix types`: a checkpoint with another number of token types.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "surgery/edit/edit_report.hpp"

namespace masque::surgery {

/// What a user asks of resize_types().
struct TypesRequest : EditRequest {
  std::uint64_t types = 0;          ///< rows of the new table
  std::optional<std::string> init;  ///< of new rows: "mean" (the default), "zero" or "copy:K"
};

/// What resize_types() did, or would do with dry_run.
struct TypesReport : EditReport {
  std::string tensor;         ///< the table of token types
  DType dtype = DType::kF32;  ///< of the table
  Shape before;               ///< [types, hidden_size]
  Shape after;                ///< [types, hidden_size]
};

/// Writes `in` with `request.types` rows in its table of token types to `out`: the first ones stay,
/// new ones are the mean of those before, zero, or a copy. type_vocab_size follows. Throws
/// UsageError for another `init`, for one without new rows and for a copy of a row that does not
/// exist, InputError if there is no such table and as finish_edit(); `out` is then unchanged.
TypesReport resize_types(const std::string& in, const std::string& out,
                         const TypesRequest& request);

}  // namespace masque::surgery
