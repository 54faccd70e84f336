// What identify_mask tries: named masks, and samples of them small enough to compare by the
// million.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "mask/expression.hpp"
#include "mask/mask.hpp"

namespace masque::mask {

/// Cells of up to 64 sampled rows and columns; all cells of a mask of at most 64 × 64.
using Sketch = std::array<std::uint64_t, 64>;

/// A name with arguments by position.
MaskExpression named_mask(std::string_view name, const std::vector<std::string>& values);

/// Where a mask is sampled.
class SampledCells {
 public:
  explicit SampledCells(Lengths lengths);

  Sketch sketch(const Mask& mask) const;
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
  MaskExpression expression;
  int cost = 0;  ///< the simpler the smaller
  Sketch sketch{};
};

/// The numbers from which parameters are taken: all for lengths up to 64, else those that show in
/// the mask.
std::vector<Index> candidate_numbers(const Mask& mask);

/// Every name with at most two numbers. Of equal ones (in a complete sample) the simplest.
std::vector<Candidate> numbered_candidates(const Mask& mask, const SampledCells& sampling);

/// Names whose lists follow from the mask: documents, words, kept keys, orders, branches, global
/// positions.
std::vector<Candidate> listed_candidates(const Mask& mask, const SampledCells& sampling);

/// The finest documents, and the fewest kept keys, that let everything through that the mask does;
/// nothing if that is everything.
std::optional<MaskExpression> enclosing_documents(const Mask& mask);
std::optional<MaskExpression> enclosing_keys(const Mask& mask);

}  // namespace masque::mask
