// Right operands of products in one or two bytes a number: strips (packed_product.hpp) of numbers
// that are widened to floats when they are multiplied.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "kernel/product/packed_product.hpp"

namespace masque::kernel {

/// How strips keep their numbers.
struct NarrowForm {
  /// Rows of the inner index that share the scales of their strip, a divisor of 384: whole numbers
  /// of one byte (RowCodes). 0: bfloat16.
  Index part = 0;
  bool minima = false;  ///< parts have minima besides

  /// Bytes of the rows of a part; of a row of bfloat16.
  Index step_bytes() const {
    return part == 0 ? kStripColumns<float> * 2 : kStripColumns<float> * (part + (minima ? 8 : 4));
  }
  /// Rows of a step.
  Index step() const { return part == 0 ? 1 : part; }
  /// Bytes of a strip of `depth` rows, a multiple of step().
  Index strip_bytes(Index depth) const { return depth / step() * step_bytes(); }
};

/// A right operand (depth, columns) in strips of kStripColumns columns, `form.strip_bytes(depth)`
/// bytes each. A part is its scales, its minima if it has some, and its rows. Borrowed.
struct NarrowStrips {
  const std::byte* data = nullptr;  ///< the first strip
  Index stride = 0;                 ///< bytes from one strip to the next
  NarrowForm form;                  ///< of all strips

  /// Row `depth` of the strip of `column`, multiples of form.step() and kStripColumns.
  const std::byte* at(Index column, Index depth) const {
    return data + column / kStripColumns<float> * stride + form.strip_bytes(depth);
  }
};

/// Writes rows `depth` … depth + count − 1 of the strips of `columns` columns from `column` on to
/// `out`, as floats: exactly the numbers that were packed. `column` is a multiple of kStripColumns,
/// depth and count of form.step().
void widen_strips(const NarrowStrips& strips, Index column, Index columns, Index depth, Index count,
                  const Strips<float>& out);

/// `y`[0 … columns) = the row `x` times rows `depth` … depth + count − 1 of the columns from
/// `column` on of `strips`, added to y with `onto_sum`: one chain for each, the bits of
/// multiply_packed() for the same floats. Arguments as of widen_strips; columns is a multiple of
/// kStripColumns.
void multiply_narrow_row(const float* x, const NarrowStrips& strips, Index column, Index columns,
                         Index depth, Index count, bool onto_sum, float* y);

/// Writes the upper halves of `wide` to `out`, as many. False, with some of them written, if a
/// number is no bfloat16.
bool narrow_to_bf16(std::span<const float> wide, std::uint16_t* out);

/// Writes 16 rows of whole numbers as a strip of `form` to `out`: `codes[r]` points at the `depth`
/// numbers of row r, `scales[r]` and `minima[r]` at those of its parts.
void pack_code_strip(const NarrowForm& form, const std::int8_t* const* codes,
                     const float* const* scales, const float* const* minima, Index depth,
                     std::byte* out);

}  // namespace masque::kernel
