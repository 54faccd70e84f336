// The job of `embed-fix types`: a checkpoint with another number of token types.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "surgery/edit/edit_report.hpp"

namespace masque::surgery {

struct TypesRequest : EditRequest {
  std::uint64_t types = 0;
  std::optional<std::string> init;  ///< of new rows: "mean" (the default), "zero" or "copy:K"
};

struct TypesReport : EditReport {
  std::string tensor;
  DType dtype = DType::kF32;
  Shape before;
  Shape after;
};

/// Writes `in` with `request.types` rows in its table of token types to `out`: the first ones stay,
/// new ones are the mean of those before, zero, or a copy. type_vocab_size follows. Throws
/// UsageError and InputError; `out` is then unchanged.
TypesReport resize_types(const std::string& in, const std::string& out,
                         const TypesRequest& request);

}  // namespace masque::surgery
