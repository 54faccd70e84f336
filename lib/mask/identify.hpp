// Which expression of the zoo a matrix is.
#pragma once

#include "mask/compare.hpp"
#include "mask/expression.hpp"

namespace masque::mask {

/// What identify_mask found.
struct Identification {
  MaskExpression expression;  ///< binds to the lengths of the mask
  MaskDifference difference;  ///< a: the given mask, b: the expression
  /// Whether the expression is the mask.
  bool exact() const { return difference.equal(); }
};

/// The simplest expression that equals `mask`, or the nearest one found. Tried are every name
/// that takes neither seed nor file, its complement, every `&` and `|` of two names with at most
/// two numbers each (lists of one position or two lengths included), and any of these `&` the
/// documents or the kept keys that the mask shows. With more than 64 queries or keys, only numbers
/// that show in the mask (lengths of runs and places where they begin) are tried. Cost at 64 × 64:
/// below a second; beyond, dominated by looking at the mask as visit_tiles does.
Identification identify_mask(const Mask& mask);

}  // namespace masque::mask
