#include "grow/sameness.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

namespace masque::grow {

namespace {

/// The largest relative error of rounding a number, in the range of normal numbers, to a type.
double unit_roundoff(DType dtype) {
  switch (dtype) {
    case DType::kF64: return 0x1p-53;
    case DType::kF32: return 0x1p-24;
    case DType::kF16: return 0x1p-11;
    case DType::kBF16: return 0x1p-8;
    case DType::kF8E4M3:
    case DType::kF8E4M3Fnuz: return 0x1p-4;
    default: return 0x1p-3;
  }
}

/// Whether numbers of ordinary size stay normal ones when they are divided.
bool has_wide_range(DType dtype) {
  return dtype == DType::kF64 || dtype == DType::kF32 || dtype == DType::kBF16;
}

}  // namespace

void judge(const GrowthRequest& request, const model::LoadPlan& found, GrowthReport& report) {
  const bool wider = request.factor != 1;
  const bool deeper = request.layers > 0;
  bool wide_range = true;
  for (const model::TensorPlan& tensor : found.tensors) {
    report.unit_roundoff = std::max(report.unit_roundoff, unit_roundoff(tensor.info->dtype));
    wide_range = wide_range && has_wide_range(tensor.info->dtype);
  }
  const bool whole = request.factor == std::floor(request.factor);
  const bool halves = whole && std::has_single_bit(static_cast<std::uint64_t>(request.factor));
  const bool exact = halves && wide_range && request.width != WidthRule::kUnequal &&
                     report.before.head.scale == report.after.head.scale;
  report.rounded = wider && !exact;
  // The strongest change counts.
  if (report.rounded) report.sameness = Sameness::kRounded;
  if (deeper && moves_norms(report.before, request.depth)) report.sameness = Sameness::kEpsilon;
  const bool other_width = wider && (!whole || request.width == WidthRule::kAki);
  const bool other_depth = deeper && !keeps_function(request.depth);
  const bool noisy = request.noise > 0 && wider;
  if (other_width || other_depth || noisy) report.sameness = Sameness::kOther;
}

}  // namespace masque::grow
