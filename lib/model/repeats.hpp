// Rows that enter the first layer alike.
#pragma once

#include <span>
#include <vector>

#include "kernel/linear.hpp"
#include "tensor/matrix.hpp"

namespace masque::model {

/// Rows of a chunk that hold the same token at the same position in the same segment, as in the
/// masked copies of a sentence: what depends on the row alone is computed once. The same bits as
/// without, since no row of a product depends on the others.
class Repeats {
 public:
  /// None: every row for itself.
  Repeats() = default;
  /// Finds the rows with equal `ids`, `positions` and `segments`, one each a row; `segments` may be
  /// empty. Nothing is borrowed.
  Repeats(std::span<const TokenId> ids, std::span<const Index> positions,
          std::span<const Index> segments);

  /// Whether enough rows repeat for the copies to pay: at least a quarter of them.
  bool pay() const { return !of_.empty() && first_.size() * 4 <= of_.size() * 3; }
  /// `y` = `linear`(`x`), where `x` has a row for each given one, equal where they are alike.
  template <class T>
  void forward(const kernel::Linear<T>& linear, MatrixView<const T> x, MatrixView<T> y) const;

 private:
  std::vector<Index> first_;  ///< the first row of each set of equal rows
  std::vector<Index> of_;     ///< for each row, its number in first_
};

}  // namespace masque::model
