// A mask of cells as an expression of the mask language, which names no file.
#pragma once

#include "mask/bit_matrix.hpp"
#include "mask/expression.hpp"

namespace masque::mask {

/// The expression `matrix(keys,"rows")` with the cells of `bits`, which has as many rows as
/// columns, at least one. Cost and memory O(cells).
MaskExpression matrix_mask(const BitMatrix& bits);

}  // namespace masque::mask
