// The mask of a record.
#pragma once

#include <string_view>

#include "mask/expression.hpp"

namespace masque::records {

/// The expression `text` that a record has for `length` tokens. Throws InputError "mask: …" if it
/// is none, is for another length, or names a mask that reads a file: data open no files.
mask::MaskExpression parse_record_mask(std::string_view text, Index length);

/// The mask `text` of a record, bound to `length` tokens. Throws InputError as parse_record_mask,
/// and for values that do not fit the length.
mask::Mask bind_record_mask(std::string_view text, Index length);

}  // namespace masque::records
