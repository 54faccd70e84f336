// Sources of rows, one below the other.
#pragma once

#include <memory>
#include <vector>

#include "tensor/row_source.hpp"

namespace masque {

/// The matrices of several sources as one.
class RowStack final : public RowSource {
 public:
  /// The rows of all `parts`, at least one and all of the same number of columns, in their order.
  explicit RowStack(std::vector<std::shared_ptr<const RowSource>> parts);

  Index rows() const override { return rows_; }
  Index columns() const override { return parts_[0]->columns(); }
  void read(Index first, MatrixView<float> out) const override;
  /// That of the source with the shortest parts, where those of all are multiples of it.
  Index part() const override { return part_; }
  bool has_minima() const override { return minima_; }
  void read_codes(Index first, Index count, const RowCodes& out) const override;

 private:
  std::vector<std::shared_ptr<const RowSource>> parts_;
  Index rows_ = 0;
  Index part_ = 0;
  bool minima_ = false;
};

}  // namespace masque
