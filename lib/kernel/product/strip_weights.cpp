#include "kernel/product/strip_weights.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <limits>
#include <utility>
#include <vector>

#include "base/divide.hpp"
#include "base/error.hpp"
#include "base/processor/large_pages.hpp"
#include "base/processor/processor.hpp"
#include "kernel/number/bfloat16.hpp"
#include "kernel/parallel.hpp"
#include "kernel/product/panel_product.hpp"

namespace masque::kernel {
namespace {

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

namespace {

/// Rows of weights that are packed at once.
constexpr Index kPart = panel::kColumns;
constexpr auto kStrip = static_cast<std::size_t>(kStripColumns<float>);

/// Packs rows [first, first + count) of `weights` as strips of whole numbers of `form`.
void pack_codes(const RowSource& weights, const NarrowForm& form, Index first, Index count,
                std::byte* out) {
  thread_local std::vector<std::int8_t> codes;
  thread_local std::vector<float> scales, minima;
  const Index depth = weights.columns(), parts = depth / form.part;
  codes.resize(static_cast<std::size_t>(count * depth));
  scales.resize(static_cast<std::size_t>(count * parts));
  minima.resize(scales.size());
  weights.read_codes(first, count, {codes, scales, minima});
  for (Index strip = 0; strip < count; strip += kStripColumns<float>) {
    std::array<const std::int8_t*, kStrip> code_rows{};
    std::array<const float*, kStrip> scale_rows{}, minimum_rows{};
    for (std::size_t i = 0; i < kStrip; ++i) {
      // Columns after the last are those of the last row.
      const Index row = std::min(strip + static_cast<Index>(i), count - 1);
      code_rows[i] = codes.data() + row * depth;
      scale_rows[i] = scales.data() + row * parts;
      minimum_rows[i] = minima.data() + row * parts;
    }
    pack_code_strip(form, code_rows.data(), scale_rows.data(), minimum_rows.data(), depth,
                    out + strip / kStripColumns<float> * form.strip_bytes(depth));
  }
}

/// Packs `rows` as strips of bfloat16 to `out`. False: one is none.
bool pack_bf16(MatrixView<const float> rows, std::byte* out) {
  thread_local Matrix<float> wide;
  wide.resize(strips_of<float>(rows.rows), rows.columns * kStripColumns<float>);
  pack_floats(rows, wide.data());
  return narrow_to_bf16(wide.span(), reinterpret_cast<std::uint16_t*>(out));
}

}  // namespace

StripWeights::StripWeights(const RowSource& weights, std::optional<NarrowForm> form, bool rounded)
    : inputs_(weights.columns()), outputs_(weights.rows()), rounded_(rounded), form_(form) {
  strips_ = large_pages(static_cast<std::size_t>(strips_of<float>(outputs_) * strip_bytes()));
}

Index StripWeights::strip_bytes() const {
  return form_ ? form_->strip_bytes(inputs_)
               : inputs_ * kStripColumns<float> * static_cast<Index>(sizeof(float));
}

bool StripWeights::tries_narrow(Index outputs, Index inputs, Precision precision) {
  constexpr Index kFrom = Index{1} << 18;
  return precision == Precision::kF32 && g_choice != ProductChoice::kOneDnn &&
         outputs * inputs >= kFrom;
}

StripWeights::StripWeights(const RowSource& weights, Precision precision)
    : StripWeights(weights,
                   precision == Precision::kBf16 ? std::optional(NarrowForm()) : std::nullopt,
                   precision == Precision::kBf16) {
  MASQUE_CHECK(precision != Precision::kF64);
  const bool done = pack(weights);
  MASQUE_CHECK(done);
}

std::optional<StripWeights> StripWeights::narrow(const RowSource& weights) {
  NarrowForm form;
  if (weights.part() > 0 && panel::kDepth % weights.part() == 0)
    form = {weights.part(), weights.has_minima()};
  StripWeights made(weights, form, false);
  if (!made.pack(weights)) return std::nullopt;
  return made;
}

bool StripWeights::pack(const RowSource& weights) {
  const Index bytes = strip_bytes();
  std::atomic<bool> fits = true;
  parallel_items(divide_up(outputs_, kPart), [&](Index p) {
    if (!fits) return;
    const Index first = p * kPart, count = std::min(kPart, outputs_ - first);
    std::byte* const out = strips_.get() + first / kStripColumns<float> * bytes;
    if (form_ && form_->part > 0) return pack_codes(weights, *form_, first, count, out);
    thread_local Matrix<float> made;
    const MatrixView<const float> rows = read_rows(weights, first, count, rounded_, made);
    if (!form_) return pack_floats(rows, reinterpret_cast<float*>(out));
    if (!pack_bf16(rows, out)) fits = false;
  });
  return fits;
}

void StripWeights::multiply(MatrixView<const float> x, Index first, MatrixView<float> y) const {
  MASQUE_CHECK(x.columns == inputs_ && x.rows == y.rows && first % kStripColumns<float> == 0);
  thread_local Matrix<float> made;
  if (rounded_) x = round_left(x, made);
  form_ ? multiply_narrow(x, first, y) : multiply_floats(x, first, y);
}

MatrixView<const float> round_left(MatrixView<const float> x, Matrix<float>& memory) {
  memory.resize(x.rows, x.columns);
  panel::pack_left(panel::Kind::kRounded, x, memory.data());
  return std::as_const(memory).view();
}

void pack_floats(MatrixView<const float> rows, float* out) {
  std::vector<const float*> begins;
  panel::list_rows({&rows, 1}, begins);
  panel::pack_panel_transposed(panel::Kind::kFloat, begins, rows.columns,
                               {out, rows.columns * kStripColumns<float>});
}

MatrixView<const float> read_rows(const RowSource& source, Index first, Index count, bool rounded,
                                  Matrix<float>& memory) {
  memory.resize(count, source.columns());
  source.read(first, memory.view());
  if (rounded) round_row_to_bf16(memory.data(), count * source.columns(), memory.data());
  return std::as_const(memory).view();
}

void multiply_strips(MatrixView<const float> x, const Strips<const float>& strips,
                     MatrixView<float> y) {
  for (Index k = 0; k < x.columns || k == 0; k += panel::kDepth) {
    const Index count = std::min(panel::kDepth, x.columns - k);
    multiply_packed(LeftOperand<float>::rows(x.middle_columns(k, count)), count,
                    strips.from_depth(k), y, k == 0 ? Onto::kNothing : Onto::kSum);
  }
}

void StripWeights::multiply_floats(MatrixView<const float> x, Index first,
                                   MatrixView<float> y) const {
  const Strips<const float> all{reinterpret_cast<const float*>(strips_.get()),
                                inputs_ * kStripColumns<float>};
  multiply_strips(x, all.from_column(first), y);
}

void StripWeights::multiply_narrow(MatrixView<const float> x, Index first,
                                   MatrixView<float> y) const {
  const NarrowStrips strips{strips_.get(), strip_bytes(), *form_};
  // Four strips of floats stay in the second-level cache until all rows were multiplied with them.
  constexpr Index kWide = 4 * kStripColumns<float>;
  thread_local Matrix<float> wide;
  wide.resize(4, panel::kDepth * kStripColumns<float>);
  for (Index column = 0; column < y.columns; column += kWide) {
    const auto to = y.middle_columns(column, std::min(kWide, y.columns - column));
    const bool whole = to.columns % kStripColumns<float> == 0;
    for (Index k = 0; k < inputs_ || k == 0; k += panel::kDepth) {
      const Index count = std::min(panel::kDepth, inputs_ - k);
      if (x.rows == 1 && whole) {
        multiply_narrow_row(x.data + k, strips, first + column, to.columns, k, count, k > 0,
                            to.data);
        continue;
      }
      const Strips<float> floats{wide.data(), panel::kDepth * kStripColumns<float>};
      widen_strips(strips, first + column, to.columns, k, count, floats);
      multiply_packed(LeftOperand<float>::rows(x.middle_columns(k, count)), count,
                      {floats.data, floats.stride}, to, k == 0 ? Onto::kNothing : Onto::kSum);
    }
  }
}

}  // namespace masque::kernel
