#include "kernel/product/streamed_weights.hpp"

#include <algorithm>
#include <utility>

#include "base/divide.hpp"
#include "kernel/parallel.hpp"
#include "kernel/product/panel_product.hpp"
#include "kernel/product/strip_weights.hpp"

namespace masque::kernel {

static_assert(StreamedWeights::kBlock <= panel::kColumns);

StreamedWeights::StreamedWeights(std::shared_ptr<const RowSource> weights, Precision precision)
    : weights_(std::move(weights)), rounded_(precision == Precision::kBf16) {
  MASQUE_CHECK(precision != Precision::kF64);
}

void StreamedWeights::multiply(MatrixView<const float> x, Index first, MatrixView<float> y) const {
  const Index inputs = weights_->columns();
  MASQUE_CHECK(x.columns == inputs && x.rows == y.rows && first % kBlock == 0);
  Matrix<float> made;
  if (rounded_) x = round_left(x, made);
  // Rows whose part of the inputs stays in the second-level cache.
  constexpr Index kRows = 96;
  parallel_items(divide_up(y.columns, kBlock), [&](Index block) {
    const Index column = block * kBlock, count = std::min(kBlock, y.columns - column);
    thread_local Matrix<float> numbers, packed;
    const MatrixView<const float> rows =
        read_rows(*weights_, first + column, count, rounded_, numbers);
    packed.resize(strips_of<float>(count), inputs * kStripColumns<float>);
    pack_floats(rows, packed.data());
    const Strips<const float> strips{packed.data(), packed.columns()};
    for (Index row = 0; row < x.rows; row += kRows) {
      const Index some = std::min(kRows, x.rows - row);
      multiply_strips(x.middle_rows(row, some), strips,
                      y.middle_rows(row, some).middle_columns(column, count));
    }
  });
}

}  // namespace masque::kernel
