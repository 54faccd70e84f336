#include "kernel/product/strip_weights.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <limits>
#include <vector>

#include "base/divide.hpp"
#include "base/error.hpp"
#include "base/processor/large_pages.hpp"
#include "base/processor/processor.hpp"
#include "kernel/parallel.hpp"
#include "kernel/product/panel_product.hpp"

namespace masque::kernel {
namespace {

/// What the operands are: pairs of bfloat16 are oneDNN's.
panel::Kind kind_of(bool rounded) { return rounded ? panel::Kind::kRounded : panel::Kind::kFloat; }

/// Weights for which our product is the faster one.
struct OursIsFaster {
  InstructionSet first, last;  ///< with these sets
  Index most_outputs, most_inputs;
  bool bf16;  ///< with operands rounded to bfloat16, too
};
constexpr Index kAny = std::numeric_limits<Index>::max();
// Measured by `bench kernels` (rows `linear_shape`) with either product.
constexpr std::array kOursIsFaster = {
    // oneDNN has its fast kernels for packed weights on AVX-512 and above: there narrow ones are
    // ours, and wide ones its own, which with few rows are slower, and with many faster.
    OursIsFaster{InstructionSet::kBaseline, InstructionSet::kAvx2, kAny, kAny, true},
    OursIsFaster{InstructionSet::kAvx512, InstructionSet::kAvx512, 256, kAny, false},
};

std::atomic<ProductChoice> g_choice = ProductChoice::kByShape;

}  // namespace

void choose_product(ProductChoice choice) { g_choice = choice; }

bool StripWeights::preferred(Index outputs, Index inputs, Precision precision) {
  const ProductChoice choice = g_choice;
  if (choice == ProductChoice::kOurs || choice == ProductChoice::kOneDnn)
    return choice == ProductChoice::kOurs;
  if (precision == Precision::kBf16 && has_pairs()) return false;
  // oneDNN makes eight rows of one, and does not stream weights at the speed of memory.
  if (choice == ProductChoice::kFewRows && precision == Precision::kF32) return true;
  const InstructionSet set = instruction_set();
  return std::any_of(kOursIsFaster.begin(), kOursIsFaster.end(), [&](const OursIsFaster& row) {
    return (row.bf16 || precision == Precision::kF32) && set >= row.first && set <= row.last &&
           outputs <= row.most_outputs && inputs <= row.most_inputs;
  });
}

StripWeights::StripWeights(std::span<const MatrixView<const float>> weights, Precision precision)
    : rounded_(precision == Precision::kBf16) {
  MASQUE_CHECK(!weights.empty() && precision != Precision::kF64);
  inputs_ = weights[0].columns;
  for (const auto& weight : weights) MASQUE_CHECK(weight.columns == inputs_);
  std::vector<const float*> rows;
  panel::list_rows(weights, rows);
  outputs_ = static_cast<Index>(rows.size());
  const Index stride = inputs_ * kStripColumns<float>;
  const Index size = strips_of<float>(outputs_) * stride;
  const auto bytes = large_pages(static_cast<std::size_t>(size) * sizeof(float));
  strips_ = std::shared_ptr<float>(bytes, reinterpret_cast<float*>(bytes.get()));
  const Strips<float> strips{strips_.get(), stride};
  constexpr Index kPart = panel::kColumns;
  parallel_ranges(divide_up(outputs_, kPart), 1, [&](Index begin, Index end) {
    for (Index first = begin * kPart; first < std::min(end * kPart, outputs_); first += kPart) {
      const std::span<const float* const> some(
          rows.data() + first, static_cast<std::size_t>(std::min(kPart, outputs_ - first)));
      panel::pack_panel_transposed(kind_of(rounded_), some, inputs_, strips.from_column(first));
    }
  });
}

void StripWeights::multiply(MatrixView<const float> x, Index first, MatrixView<float> y) const {
  MASQUE_CHECK(x.columns == inputs_ && x.rows == y.rows && first % kStripColumns<float> == 0);
  thread_local Matrix<float> made;
  if (rounded_) {
    made.resize(x.rows, inputs_);
    panel::pack_left(kind_of(rounded_), x, made.data());
    x = made.view();
  }
  const Strips<const float> strips =
      Strips<const float>{strips_.get(), inputs_ * kStripColumns<float>}.from_column(first);
  for (Index k = 0; k < inputs_ || k == 0; k += panel::kDepth) {
    const Index count = std::min(panel::kDepth, inputs_ - k);
    multiply_packed(LeftOperand<float>::rows(x.middle_columns(k, count)), count,
                    strips.from_depth(k), y, k == 0 ? Onto::kNothing : Onto::kSum);
  }
}

}  // namespace masque::kernel
