// Which expression of the zoo a matrix is.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "mask/compare.hpp"
#include "mask/expression.hpp"
#include "mask/mask.hpp"

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

// What identify_mask tries: named masks, and samples of them small enough to compare by the
// million.

/// Cells of up to 64 sampled rows and columns; all cells of a mask of at most 64 × 64.
using Sketch = std::array<std::uint64_t, 64>;

/// The mask `name` with the arguments `values` by position; not checked.
MaskExpression named_mask(std::string_view name, const std::vector<std::string>& values);

/// Where a mask is sampled.
class SampledCells {
 public:
  /// Chooses rows and columns of a mask of `lengths`: all up to 64, else four runs of 16.
  explicit SampledCells(Lengths lengths);

  /// The sampled cells of `mask`, which has these lengths: a word for each sampled row, the first
  /// sampled column in bit 0.
  Sketch sketch(const Mask& mask) const;
  /// Number of sampled rows, at most 64.
  std::size_t rows() const { return rows_.size(); }
  /// Whether the sample is the mask.
  bool complete() const { return complete_; }

 private:
  std::vector<Index> rows_;
  std::vector<Range> columns_;
  bool complete_ = false;
};

/// A named mask that could be the answer or a term of it.
struct Candidate {
  MaskExpression expression;  ///< the name with its arguments
  int cost = 0;               ///< the simpler the smaller
  Sketch sketch{};            ///< its sampled cells
};

/// The numbers from which parameters are taken, ascending: all for lengths up to 64, else at most
/// 67 that show in `mask`.
std::vector<Index> candidate_numbers(const Mask& mask);

/// Every name with at most two numbers, of candidate_numbers(mask), that fits the lengths of
/// `mask`, with its cells of `sampling`. Of equal ones (in a complete sample) the simplest.
std::vector<Candidate> numbered_candidates(const Mask& mask, const SampledCells& sampling);

/// Names whose lists follow from `mask`: documents, words, kept keys, orders, branches, global
/// positions; with their cells of `sampling`. They need not equal `mask`.
std::vector<Candidate> listed_candidates(const Mask& mask, const SampledCells& sampling);

/// The finest documents that let everything through that `mask` does; nothing if that is one
/// document, or more than 4096.
std::optional<MaskExpression> enclosing_documents(const Mask& mask);
/// The fewest kept keys that let everything through that `mask` does; nothing if that is all keys
/// or none.
std::optional<MaskExpression> enclosing_keys(const Mask& mask);

}  // namespace masque::mask
