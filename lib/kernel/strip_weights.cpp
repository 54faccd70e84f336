#include "kernel/strip_weights.hpp"

#include <algorithm>
#include <vector>

#include "base/error.hpp"
#include "base/large_pages.hpp"
#include "base/processor.hpp"
#include "kernel/bfloat16.hpp"
#include "kernel/pack_strips.hpp"
#include "kernel/parallel.hpp"

namespace masque::kernel {
namespace {

/// Inputs between two visits of a tile of the result: a strip's part stays in the first-level
/// cache.
constexpr Index kDepth = 384;
/// Outputs that a thread packs at a time.
constexpr Index kPart = 4 * kStripColumns<float>;

}  // namespace

bool StripWeights::preferred() { return instruction_set() < InstructionSet::kAvx512; }

StripWeights::StripWeights(std::span<const MatrixView<const float>> weights, Precision precision)
    : rounded_(precision == Precision::kBf16) {
  MASQUE_CHECK(!weights.empty() && precision != Precision::kF64);
  inputs_ = weights[0].columns;
  std::vector<const float*> rows;
  for (const auto& weight : weights) {
    MASQUE_CHECK(weight.columns == inputs_);
    for (Index i = 0; i < weight.rows; ++i) rows.push_back(weight.row(i));
  }
  outputs_ = static_cast<Index>(rows.size());
  const Index stride = inputs_ * kStripColumns<float>;
  const Index size = strips_of<float>(outputs_) * stride;
  const auto bytes = large_pages(static_cast<std::size_t>(size) * sizeof(float));
  strips_ = std::shared_ptr<float>(bytes, reinterpret_cast<float*>(bytes.get()));
  const Strips<float> strips{strips_.get(), stride};
  parallel_ranges((outputs_ + kPart - 1) / kPart, 1, [&](Index begin, Index end) {
    Matrix<float> made(rounded_ ? kPart : 0, inputs_);
    for (Index first = begin * kPart; first < std::min(end * kPart, outputs_); first += kPart) {
      const Index count = std::min(kPart, outputs_ - first);
      std::span<const float*> some(rows.data() + first, static_cast<std::size_t>(count));
      for (Index i = 0; rounded_ && i < count; ++i) {
        const float*& row = some[static_cast<std::size_t>(i)];
        round_row_to_bf16(row, inputs_, made.view().row(i));
        row = made.view().row(i);
      }
      pack_rows_transposed<float>(some, inputs_, strips.from_column(first));
    }
  });
}

void StripWeights::multiply(MatrixView<const float> x, Index first, MatrixView<float> y) const {
  MASQUE_CHECK(x.columns == inputs_ && x.rows == y.rows && first % kStripColumns<float> == 0);
  thread_local Matrix<float> made;
  if (rounded_) {
    made.resize(x.rows, inputs_);
    for (Index i = 0; i < x.rows; ++i) round_row_to_bf16(x.row(i), inputs_, made.view().row(i));
    x = made.view();
  }
  const Strips<const float> strips =
      Strips<const float>{strips_.get(), inputs_ * kStripColumns<float>}.from_column(first);
  for (Index k = 0; k < inputs_ || k == 0; k += kDepth) {
    const Index count = std::min(kDepth, inputs_ - k);
    multiply_packed(LeftOperand<float>::rows(x.middle_columns(k, count)), count,
                    strips.from_depth(k), y, k == 0 ? Onto::kNothing : Onto::kSum);
  }
}

}  // namespace masque::kernel
