#include "evaluate/score/text_comparison.hpp"

#include <cmath>
#include <limits>
#include <utility>

#include "base/error.hpp"
#include "evaluate/statistics/resampling.hpp"

namespace masque::evaluate {

namespace {

/// NaN instead of a p-value that a value which is NaN would make small.
double p_or_none(const MetricResult& result, double p) {
  const bool known = !std::isnan(result.value) && !std::isnan(*result.against);
  return known ? p : std::numeric_limits<double>::quiet_NaN();
}

}  // namespace

TextComparison::TextComparison(std::vector<TextMetric> metrics, std::size_t systems, bool keep)
    : width_(count_width(metrics)), systems_(systems), keep_(keep), sums_(width_ * systems) {
  MASQUE_CHECK(systems == 1 || systems == 2);
  std::size_t first = 0;
  for (const TextMetric metric : metrics) {
    places_.push_back({metric, first, count_width(metric)});
    first += places_.back().width;
  }
}

void TextComparison::add(std::span<const std::uint32_t> counts) {
  const std::size_t row = width_ * systems_;
  MASQUE_CHECK(counts.size() % row == 0);
  std::vector<double> terms(width_);
  for (std::size_t at = 0; at < counts.size(); at += width_) {
    double* const sums = sums_.data() + at % row;
    for (const Place& p : places_) put_terms(p.metric, &counts[at + p.first], &terms[p.first]);
    for (std::size_t k = 0; k < width_; ++k) sums[k] += terms[k];
  }
  lines_ += counts.size() / row;
  if (keep_) counts_.insert(counts_.end(), counts.begin(), counts.end());
}

void TextComparison::put_row(Index row, std::size_t step, double* out) const {
  const std::uint32_t* counts = counts_.data() + static_cast<std::size_t>(row) * width_ * systems_;
  for (std::size_t s = 0; s < systems_; ++s) {
    for (const Place& p : places_) {
      double terms[kMostCounts];
      put_terms(p.metric, counts + s * width_ + p.first, terms);
      for (std::size_t k = 0; k < p.width; ++k) out[(s * width_ + p.first + k) * step] = terms[k];
    }
  }
}

std::vector<double> TextComparison::bootstrap(const ComparisonRequest& request) const {
  SampledRows rows{static_cast<Index>(lines_), static_cast<Index>(width_ * systems_), {}};
  rows.read = [this](Index first, Index count, double* out) {
    for (Index i = 0; i < count; ++i) put_row(first + i, static_cast<std::size_t>(count), out + i);
  };
  ResamplingRequest draws{RowDraw::kBootstrap, request.samples, request.seed, request.threads, {}};
  if (request.progress) {
    draws.progress = [&](Index done) {
      request.progress(static_cast<std::uint64_t>(done),
                       static_cast<std::uint64_t>(request.samples + request.trials));
    };
  }
  return resampled_sums(rows, draws);
}

std::vector<double> TextComparison::exchanged(const ComparisonRequest& request) const {
  SampledRows rows{static_cast<Index>(lines_), static_cast<Index>(width_), {}};
  rows.read = [this](Index first, Index count, double* out) {
    std::vector<double> both(2 * width_);
    for (Index i = 0; i < count; ++i) {
      put_row(first + i, 1, both.data());
      for (std::size_t k = 0; k < width_; ++k)
        out[static_cast<Index>(k) * count + i] = both[width_ + k] - both[k];
    }
  };
  ResamplingRequest draws{RowDraw::kCoin, request.trials, request.seed, request.threads, {}};
  if (request.progress) {
    draws.progress = [&](Index done) {
      request.progress(static_cast<std::uint64_t>(request.samples + done),
                       static_cast<std::uint64_t>(request.samples + request.trials));
    };
  }
  return resampled_sums(rows, draws);
}

void TextComparison::add_bootstrap(const ComparisonRequest& request,
                                   std::vector<MetricResult>& results) const {
  const auto samples = static_cast<std::size_t>(request.samples);
  const std::vector<double> sums = bootstrap(request);
  const auto rows = static_cast<Index>(lines_);
  for (std::size_t m = 0; m < places_.size(); ++m) {
    const Place& p = places_[m];
    MetricResult& result = results[m];
    std::vector<double> values[2];
    for (std::size_t s = 0; s < systems_; ++s) {
      for (std::size_t r = 0; r < samples; ++r) {
        const double* row = sums.data() + (r * systems_ + s) * width_ + p.first;
        values[s].push_back(metric_value(p.metric, {row, p.width}));
      }
    }
    if (systems_ == 2) {
      result.p_bootstrap = p_or_none(
          result, paired_bootstrap_p(values[0], values[1], result.value, *result.against));
      std::vector<double> differences(samples);
      for (std::size_t r = 0; r < samples; ++r) differences[r] = values[0][r] - values[1][r];
      result.difference_interval = bootstrap_interval(std::move(differences), rows, request.level);
    }
    result.interval = bootstrap_interval(std::move(values[0]), rows, request.level);
  }
}

void TextComparison::add_randomization(const ComparisonRequest& request,
                                       std::vector<MetricResult>& results) const {
  const auto trials = static_cast<std::size_t>(request.trials);
  const std::vector<double> moved = exchanged(request);
  std::vector<double> of_first(width_);
  std::vector<double> of_second(width_);
  for (std::size_t m = 0; m < places_.size(); ++m) {
    const Place& p = places_[m];
    std::vector<double> values[2];
    for (std::size_t r = 0; r < trials; ++r) {
      for (std::size_t k = 0; k < p.width; ++k) {
        const double move = moved[r * width_ + p.first + k];
        of_first[k] = sums_[p.first + k] + move;
        of_second[k] = sums_[width_ + p.first + k] - move;
      }
      values[0].push_back(metric_value(p.metric, {of_first.data(), p.width}));
      values[1].push_back(metric_value(p.metric, {of_second.data(), p.width}));
    }
    MetricResult& result = results[m];
    result.p_randomization =
        p_or_none(result, randomization_p(values[0], values[1], result.value, *result.against));
  }
}

std::vector<MetricResult> TextComparison::results(const ComparisonRequest& request) const {
  MASQUE_CHECK(lines_ > 0 && (keep_ || request.samples + request.trials == 0) &&
               (systems_ == 2 || request.trials == 0));
  std::vector<MetricResult> results;
  for (const Place& p : places_) {
    MetricResult result;
    result.metric = p.metric;
    result.value = metric_value(p.metric, {sums_.data() + p.first, p.width});
    if (systems_ == 2)
      result.against = metric_value(p.metric, {sums_.data() + width_ + p.first, p.width});
    results.push_back(result);
  }
  if (request.samples > 0) add_bootstrap(request, results);
  if (request.trials > 0) add_randomization(request, results);
  return results;
}

}  // namespace masque::evaluate
