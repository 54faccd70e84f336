// The mask of a record.
#pragma once

#include <string_view>

#include "mask/expression.hpp"

namespace masque::records {

/// The expression that a record has for `length` tokens. Throws InputError "mask: …" if it is none,
/// is for another length, or names a mask that reads a file: data open no files.
mask::MaskExpression parse_record_mask(std::string_view text, Index length);

/// The same, bound to that length; InputError also for values that do not fit it.
mask::Mask bind_record_mask(std::string_view text, Index length);

}  // namespace masque::records
