#include "model/start_value.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/error.hpp"
#include "tensor/convert.hpp"

namespace masque::model {
namespace {

using Kind = StartValue::Kind;

constexpr std::uint64_t kChunkElements = 65536;  // that are written at once

/// Element `column` of row `row` of a table of sines and cosines.
double sine_at(std::uint64_t row, std::uint64_t column, std::uint64_t columns, bool alternating) {
  const std::uint64_t sines = (columns + 1) / 2;
  const bool is_sine = alternating ? column % 2 == 0 : column < sines;
  std::uint64_t pair = column;
  if (alternating) {
    pair = column / 2;
  } else if (!is_sine) {
    pair = column - sines;
  }
  const double angle =
      static_cast<double>(row) /
      std::pow(10000.0, 2.0 * static_cast<double>(pair) / static_cast<double>(columns));
  return is_sine ? std::sin(angle) : std::cos(angle);
}

/// Replaces what lies beyond the cutoff by the next number of the same place that does not.
void redraw(double cutoff, const RandomStream& stream, std::uint64_t first, std::span<double> out) {
  for (std::size_t i = 0; i < out.size(); ++i) {
    for (std::uint64_t item = 1; std::abs(out[i]) > cutoff; ++item)
      stream.for_item(item).normal(first + i, 1, &out[i]);
  }
}

void fill_normal(const StartValue& start, const RandomStream& stream, std::uint64_t first,
                 std::span<double> out) {
  if (start.deviation == 0) {
    std::ranges::fill(out, start.mean);
    return;
  }
  stream.normal(first, out.size(), out.data());
  if (start.kind == Kind::kTruncatedNormal) redraw(start.cutoff, stream, first, out);
  for (double& value : out) value = start.mean + start.deviation * value;
}

/// Of Λ (outputs, inputs), which mixes heads.
StartValue start_of_mixing(Index outputs, Index inputs) {
  if (outputs == inputs) return {.kind = Kind::kIdentity};
  // Copies of heads would stay copies.
  return StartValue::normal(1 / std::sqrt(static_cast<double>(inputs)));
}

}  // namespace

StartValues::StartValues(const Design& design, double range)
    : range_(range),
      hidden_size_(design.hidden_size),
      positions_(position_parameters(design)),
      mixers_(mixer_parameters(design)),
      score_scale_(start_of_score_scale(design)),
      heads_(design.num_attention_heads),
      softmax_heads_(softmax_heads(design)),
      value_heads_(value_heads(design)),
      kappa_(design.variants.latent ? design.variants.latent->kappa : 1),
      weight_offset_(design.norm.weight_offset) {}

StartValue StartValues::of(Role role, bool bias, Index part) const {
  // As transformers starts that of gpt-oss.
  if (bias && role == Role::kRouter) return StartValue::normal(range_);
  if (bias || role == Role::kGatedBeta) return StartValue::constant(0);
  if (is_norm(role)) return StartValue::constant(1 - weight_offset_);
  if (role == Role::kGatedGamma) return StartValue::constant(1);
  switch (role) {
    case Role::kAttentionResidual:
    case Role::kFeedForwardResidual:
    case Role::kHeadScale: return StartValue::constant(1);
    case Role::kScoreScale: return StartValue::constant(score_scale_);
    case Role::kAttentionScale:
    case Role::kFeedForwardScale: return StartValue::constant(0);
    case Role::kPositionPart:
    case Role::kSharedPositionPart: {
      const nn::PositionParameter& own = positions_[static_cast<std::size_t>(part)];
      if (!own.values.empty()) return {.kind = Kind::kGiven, .values = own.values};
      return {.kind = Kind::kNormal, .mean = own.mean, .deviation = own.deviation};
    }
    case Role::kMixerPart: {
      const nn::MixerParameter& own = mixers_[static_cast<std::size_t>(part)];
      return {.kind = Kind::kNormal, .mean = own.mean, .deviation = own.deviation};
    }
    case Role::kTalkingBefore: return start_of_mixing(softmax_heads_, heads_);
    case Role::kTalkingAfter: return start_of_mixing(value_heads_, softmax_heads_);
    case Role::kLatentInput:
      return StartValue::normal(1 / std::sqrt(static_cast<double>(hidden_size_)));
    case Role::kLatentOutput: return StartValue::normal(1);
    case Role::kLatentKappa: return StartValue::constant(std::log(kappa_));
    default: return StartValue::normal(range_);
  }
}

void fill_start(const StartValue& start, Index columns, const RandomStream& stream,
                std::uint64_t first, std::span<double> out) {
  const auto width = static_cast<std::uint64_t>(columns);
  const auto fill = [&](auto element) {
    for (std::size_t i = 0; i < out.size(); ++i)
      out[i] = element((first + i) / width, (first + i) % width);
  };
  switch (start.kind) {
    case Kind::kConstant: std::ranges::fill(out, start.mean); break;
    case Kind::kNormal:
    case Kind::kTruncatedNormal: fill_normal(start, stream, first, out); break;
    case Kind::kIdentity:
      fill([](std::uint64_t row, std::uint64_t column) { return row == column ? 1.0 : 0.0; });
      break;
    case Kind::kGiven:
      MASQUE_CHECK(first + out.size() <= start.values.size());
      std::copy_n(start.values.begin() + static_cast<std::ptrdiff_t>(first), out.size(),
                  out.begin());
      break;
    case Kind::kSines:
    case Kind::kAlternatingSines:
      fill([&](std::uint64_t row, std::uint64_t column) {
        return sine_at(row, column, width, start.kind == Kind::kAlternatingSines);
      });
      break;
  }
  if (!start.zero_row) return;
  const auto zero = static_cast<std::uint64_t>(*start.zero_row);
  for (std::size_t i = 0; i < out.size(); ++i) {
    if ((first + i) / width == zero) out[i] = 0;
  }
}

store::OutputTensor started_tensor(store::TensorInfo info, StartValue start,
                                   const RandomStream& stream) {
  const std::uint64_t bytes_each = dtype_bits(info.dtype) / 8;
  const auto columns = info.shape.size() < 2 ? Index{1} : static_cast<Index>(info.shape.back());
  store::Computed source;
  source.chunk_bytes = kChunkElements * bytes_each;
  source.fill = [start = std::move(start), columns, stream, bytes_each, dtype = info.dtype](
                    std::uint64_t offset, MutableBytes out) {
    std::vector<double> values(out.size() / bytes_each);
    fill_start(start, columns, stream, offset / bytes_each, values);
    from_double(dtype, values, out);
  };
  return {std::move(info), std::move(source)};
}

}  // namespace masque::model
