#include "surgery/correction/mlm_correction.hpp"

#include <algorithm>
#include <cmath>
#include <functional>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/digest/hash.hpp"
#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/json/json.hpp"
#include "base/string/parse_number.hpp"
#include "base/string/split.hpp"

namespace masque::surgery {

namespace {

std::string_view mean_name(MeanKind mean) {
  switch (mean) {
    case MeanKind::kUsed: return "used";
    case MeanKind::kFrequency: return "freq";
    default: return "vocab";
  }
}

bool are_shares(const MlmRates& rates) {
  const auto is_share = [](double value) { return value >= 0 && value <= 1; };
  return is_share(rates.rate) && is_share(rates.mask) && is_share(rates.keep) &&
         is_share(rates.random) && std::abs(rates.mask + rates.keep + rates.random - 1) <= 1e-9;
}

std::vector<bool> kept_flags(const MlmCorrection& correction, std::uint64_t rows) {
  std::vector<bool> kept(rows, false);
  for (const std::uint64_t row : correction.kept_rows) {
    if (row < rows) kept[row] = true;
  }
  return kept;
}

/// The mean row, and an error that names the row if it is not finite.
std::vector<double> mean_row(const store::Checkpoint& checkpoint, const store::TensorInfo& table,
                             std::span<const double> weights, int threads) {
  std::vector<double> mean = weighted_row_sum(checkpoint, table, weights, threads);
  if (weights.empty()) {
    for (double& value : mean) value /= static_cast<double>(table.shape[0]);
  }
  if (std::all_of(mean.begin(), mean.end(), [](double x) { return std::isfinite(x); })) return mean;
  for (std::uint64_t row = 0; row < table.shape[0]; ++row) {
    if (!weights.empty() && weights[row] == 0) continue;
    for (const double value : read_row(checkpoint, table, row)) {
      if (!std::isfinite(value)) {
        throw InputError(
            checkpoint.path(),
            fmt::format("tensor '{}': row {} holds {}, expected finite numbers in the mean",
                        escape(table.name), row, value));
      }
    }
  }
  throw InputError(checkpoint.path(),
                   fmt::format("tensor '{}': the mean of the rows overflows", escape(table.name)));
}

}  // namespace

void check_rates(const MlmRates& rates) {
  for (const auto& [value, name] : {std::pair{rates.rate, "rate"},
                                    {rates.mask, "mask"},
                                    {rates.keep, "keep"},
                                    {rates.random, "random"}}) {
    if (!(value >= 0 && value <= 1)) {
      throw UsageError(fmt::format("{}: found {}, expected 0 to 1", field(name), value));
    }
  }
  const double sum = rates.mask + rates.keep + rates.random;
  if (std::abs(sum - 1) > 1e-9) {
    throw UsageError(fmt::format("{}, {} and {} add up to {:.9g}, expected 1", field("mask"),
                                 field("keep"), field("random"), sum));
  }
}

std::string MlmCorrection::marker() const {
  std::string text = fmt::format("rate={} mask={} keep={} random={} mask_row={} kept={} mean={}",
                                 rates.rate, rates.mask, rates.keep, rates.random, mask_row,
                                 fmt::join(kept_rows, ","), mean_name(mean));
  if (!weights_digest.empty()) text += fmt::format(" weights={}", weights_digest);
  return text;
}

std::optional<MlmCorrection> MlmCorrection::parse(std::string_view marker) {
  MlmCorrection out;
  for (const std::string_view field : split_terminated(marker, ' ')) {
    const auto [name, text] = split_at_first(field, '=');
    if (!text) return std::nullopt;
    const std::string_view value = *text;
    double* share = name == "rate"     ? &out.rates.rate
                    : name == "mask"   ? &out.rates.mask
                    : name == "keep"   ? &out.rates.keep
                    : name == "random" ? &out.rates.random
                                       : nullptr;
    if (share != nullptr) {
      const auto number = parse_number<double>(value);
      if (!number) return std::nullopt;
      *share = *number;
    } else if (name == "mask_row") {
      const auto row = parse_unsigned(value);
      if (!row) return std::nullopt;
      out.mask_row = *row;
    } else if (name == "kept") {
      for (const std::string_view id : split_terminated(value, ',')) {
        const auto row = parse_unsigned(id);
        if (!row) return std::nullopt;
        out.kept_rows.push_back(*row);
      }
    } else if (name == "mean") {
      out.mean = value == "used"   ? MeanKind::kUsed
                 : value == "freq" ? MeanKind::kFrequency
                                   : MeanKind::kVocab;
    } else if (name == "weights") {
      out.weights_digest = value;
    } else {
      return std::nullopt;
    }
  }
  const bool ascending =
      std::ranges::adjacent_find(out.kept_rows, std::greater_equal<>()) == out.kept_rows.end();
  if (!ascending || !are_shares(out.rates) || out.marker() != marker) return std::nullopt;
  return out;
}

std::vector<double> used_weights(std::uint64_t rows, const TokenNames& names) {
  std::vector<double> weights(rows, 0.0);
  double count = 0;
  for (std::uint64_t row = 0; row < rows; ++row) {
    if (!names.assigned(row) || is_unused_token(names.token(row))) continue;
    weights[row] = 1;
    ++count;
  }
  if (count == 0) throw InputError(names.source(), "no used token, expected at least one");
  for (double& weight : weights) weight /= count;
  return weights;
}

std::vector<double> frequency_weights(std::string_view text, const std::string& path,
                                      std::uint64_t rows, const TokenNames& names) {
  struct Line {
    std::string_view key;
    double count;
  };
  std::vector<Line> lines;
  bool all_ids = true;
  const auto fail = [&](std::size_t line, const std::string& message) {
    return InputError(fmt::format("{}:{}", path, line), message);
  };
  for (std::string_view line : split_terminated(text, '\n')) {
    line = without_return(line);
    const auto [key, text_of_count] = split_at_last(line, '\t');
    const auto count = text_of_count ? parse_number<double>(*text_of_count) : std::nullopt;
    if (!count || !(*count >= 0) || !std::isfinite(*count)) {
      throw fail(
          lines.size() + 1,
          fmt::format("found '{}', expected a token or id, a tab and a count", escape(line)));
    }
    lines.push_back({key, *count});
    all_ids = all_ids && parse_unsigned(lines.back().key).has_value();
  }
  std::vector<double> weights(rows, 0.0);
  std::vector<bool> seen(rows, false);
  double total = 0;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const std::string key(lines[i].key);
    const auto row = all_ids ? parse_unsigned(key) : names.id(key);
    if (!row) throw fail(i + 1, fmt::format("no token '{}' in the vocabulary", escape(key)));
    if (*row >= rows) throw fail(i + 1, fmt::format("id {}, expected an id below {}", *row, rows));
    if (seen[*row]) throw fail(i + 1, fmt::format("'{}' is listed twice", escape(key)));
    seen[*row] = true;
    weights[*row] = lines[i].count;
    total += lines[i].count;
  }
  if (!(total > 0) || !std::isfinite(total))
    throw InputError(path, "no count above 0, expected at least one");
  for (double& weight : weights) weight /= total;
  return weights;
}

std::string weights_digest(std::span<const double> weights) {
  return xxh3_of(std::as_bytes(weights));
}

AffineRows mlm_map(const store::Checkpoint& checkpoint, const store::TensorInfo& table,
                   const MlmCorrection& correction, std::span<const double> weights, int threads) {
  const std::vector<double> mean = mean_row(checkpoint, table, weights, threads);
  const std::vector<double> mask = read_row(checkpoint, table, correction.mask_row);
  AffineRows map;
  map.scale = correction.rates.scale();
  map.kept = kept_flags(correction, table.shape[0]);
  map.shift.resize(mean.size());
  for (std::size_t j = 0; j < mean.size(); ++j) {
    map.shift[j] =
        correction.rates.mask_weight() * mask[j] + correction.rates.mean_weight() * mean[j];
  }
  return map;
}

// With a, b, c the weights of the row, of [MASK] and of the mean μ; w the weights of the rows,
// W = Σ w over the corrected rows and S = Σ w·E over the kept ones, the corrected mean is
//   μ′ = a·(μ − S) + S + W·(b·m + c·μ),
// which is solved for μ; m is the [MASK] row if it was kept, else m = (m′ − c·μ)/(a + b).
AffineRows inverse_mlm_map(const store::Checkpoint& checkpoint, const store::TensorInfo& table,
                           const MlmCorrection& correction, std::span<const double> weights,
                           int threads) {
  const double a = correction.rates.scale();
  const double b = correction.rates.mask_weight();
  const double c = correction.rates.mean_weight();
  const std::uint64_t rows = table.shape[0];
  const std::vector<bool> kept = kept_flags(correction, rows);
  const bool mask_kept = kept[correction.mask_row];
  const std::vector<double> mean = mean_row(checkpoint, table, weights, threads);
  const std::vector<double> mask = read_row(checkpoint, table, correction.mask_row);
  std::vector<double> kept_sum(mean.size(), 0.0);
  double corrected_weight = 1;
  for (const std::uint64_t row : correction.kept_rows) {
    if (row >= rows) continue;
    const double weight = weights.empty() ? 1.0 / static_cast<double>(rows) : weights[row];
    if (weight == 0) continue;
    corrected_weight -= weight;
    const std::vector<double> values = read_row(checkpoint, table, row);
    for (std::size_t j = 0; j < values.size(); ++j) kept_sum[j] += weight * values[j];
  }
  const double from_mask = mask_kept ? corrected_weight * b : corrected_weight * b / (a + b);
  const double factor = a + corrected_weight * c - (mask_kept ? 0 : from_mask * c);
  if (!(a > 0) || !(factor > 0)) {
    throw InputError(checkpoint.path(),
                     "the correction kept nothing of the original rows: it cannot be inverted");
  }
  AffineRows map;
  map.scale = 1 / a;
  map.kept = kept;
  map.shift.resize(mean.size());
  for (std::size_t j = 0; j < mean.size(); ++j) {
    const double original_mean = (mean[j] - (1 - a) * kept_sum[j] - from_mask * mask[j]) / factor;
    const double original_mask = mask_kept ? mask[j] : (mask[j] - c * original_mean) / (a + b);
    map.shift[j] = -(b * original_mask + c * original_mean) / a;
  }
  return map;
}

}  // namespace masque::surgery
