#include "evaluate/statistics/resampling.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <numbers>
#include <numeric>

#include "base/divide.hpp"
#include "base/error.hpp"
#include "base/processor/vectorize.hpp"
#include "base/random/random.hpp"
#include "base/thread/interrupt.hpp"
#include "base/thread/parallel.hpp"
#include "evaluate/statistics/summary.hpp"

namespace masque::evaluate {

namespace {

/// Replicates that go over the rows together.
constexpr std::size_t kReplicates = 16;
/// Rows that are read at a time: their numbers stay in the cache.
constexpr std::size_t kTileRows = 256;
constexpr std::size_t kDraws = 4096;

/// What is written as vectors below: from plain loops over these the compiler makes permutations.
using Two __attribute__((vector_size(16), may_alias, aligned(8))) = double;
constexpr std::size_t kTwos = kReplicates / 2;

/// sums[r] += Σ weights[i][r] · values[i], i ascending. The replicates' sums, side by side, wait
/// for none of each other.
inline void add_weighted(const double* values, const double* weights, std::size_t rows,
                         double* sums) {
  Two local[kTwos];
  for (std::size_t q = 0; q < kTwos; ++q) local[q] = reinterpret_cast<const Two*>(sums)[q];
  for (std::size_t i = 0; i < rows; ++i) {
    const Two* of_row = reinterpret_cast<const Two*>(weights + i * kReplicates);
    for (std::size_t q = 0; q < kTwos; ++q) local[q] += of_row[q] * values[i];
  }
  for (std::size_t q = 0; q < kTwos; ++q) reinterpret_cast<Two*>(sums)[q] = local[q];
}

/// How often each row is drawn.
using Times = std::vector<std::uint16_t>;

void draw_bootstrap(const RandomStream& stream, Times& times) {
  Draw draw(stream);
  std::vector<std::uint32_t> drawn(std::min(kDraws, times.size()));
  for (std::size_t done = 0; done < times.size(); done += drawn.size()) {
    throw_if_interrupted();
    drawn.resize(std::min(drawn.size(), times.size() - done));
    draw.below(std::ssize(times), drawn);
    // Of 65,536 draws of one row among more the chance is nothing, but a wrong sum is no answer.
    for (const std::uint32_t row : drawn) MASQUE_CHECK(++times[row] != 0);
  }
}

void draw_coins(const RandomStream& stream, Times& times) {
  constexpr std::size_t kBits = 32;
  std::vector<std::uint32_t> words(divide_up(times.size(), kBits));
  stream.words(words.size(), words.data());
  for (std::size_t i = 0; i < times.size(); ++i)
    times[i] = static_cast<std::uint16_t>(words[i / kBits] >> (i % kBits) & 1);
}

/// The sums of up to kReplicates replicates from number `first` on.
void sum_replicates(const SampledRows& data, const ResamplingRequest& request, Index first,
                    std::span<double> out) {
  const auto rows = static_cast<std::size_t>(data.rows);
  const auto width = static_cast<std::size_t>(data.width);
  const std::size_t count = out.size() / width;
  const bool coin = request.how == RowDraw::kCoin;
  const RandomStream stream(request.seed, coin ? "coin" : "bootstrap");
  std::vector<Times> times(count, Times(rows));
  for (std::size_t r = 0; r < count; ++r) {
    const RandomStream own = stream.for_item(static_cast<std::uint64_t>(first) + r);
    if (coin) {
      draw_coins(own, times[r]);
    } else {
      draw_bootstrap(own, times[r]);
    }
  }
  std::vector<double> sums(width * kReplicates);
  std::vector<double> values(width * kTileRows);
  std::vector<double> weights(kTileRows * kReplicates);
  for (std::size_t begin = 0; begin < rows; begin += kTileRows) {
    throw_if_interrupted();
    const std::size_t tile = std::min(kTileRows, rows - begin);
    data.read(static_cast<Index>(begin), static_cast<Index>(tile), values.data());
    for (std::size_t r = 0; r < count; ++r) {
      for (std::size_t i = 0; i < tile; ++i) weights[i * kReplicates + r] = times[r][begin + i];
    }
    for (std::size_t k = 0; k < width; ++k) {
      vectorized<add_weighted>(values.data() + k * tile, weights.data(), tile,
                               sums.data() + k * kReplicates);
    }
  }
  for (std::size_t r = 0; r < count; ++r) {
    for (std::size_t k = 0; k < width; ++k) out[r * width + k] = sums[k * kReplicates + r];
  }
}

/// Between order statistics ⌊h⌋ and ⌊h⌋ + 1 for h = p (n − 1); `sorted` is not empty.
double sorted_quantile(const std::vector<double>& sorted, double p) {
  const double h = p * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(h);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (h - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

std::vector<double> differences(std::span<const double> a, std::span<const double> b) {
  MASQUE_CHECK(a.size() == b.size() && !a.empty());
  std::vector<double> out(a.size());
  for (std::size_t i = 0; i < a.size(); ++i) out[i] = std::abs(a[i] - b[i]);
  return out;
}

}  // namespace

std::vector<double> resampled_sums(const SampledRows& rows, const ResamplingRequest& request) {
  MASQUE_CHECK(rows.rows > 0 && rows.rows < Index{1} << 32 && rows.width > 0 &&
               request.replicates > 0);
  const auto width = static_cast<std::size_t>(rows.width);
  std::vector<double> out(static_cast<std::size_t>(request.replicates) * width);
  constexpr auto kGroup = static_cast<Index>(kReplicates);
  std::atomic<Index> done = 0;
  parallel_for(divide_up(request.replicates, kGroup), request.threads, [&](Index group) {
    const Index first = group * kGroup;
    const Index count = std::min(kGroup, request.replicates - first);
    sum_replicates(rows, request, first,
                   std::span(out).subspan(static_cast<std::size_t>(first) * width,
                                          static_cast<std::size_t>(count) * width));
    done += count;
    if (request.progress) request.progress(done);
  });
  return out;
}

std::optional<Interval> bootstrap_interval(std::vector<double> replicates, Index rows,
                                           double level) {
  MASQUE_CHECK(!replicates.empty() && rows > 0);
  if (rows < kFewestSampledRows) return std::nullopt;
  constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
  if (std::any_of(replicates.begin(), replicates.end(), [](double x) { return std::isnan(x); }))
    return Interval{kNaN, kNaN};
  std::sort(replicates.begin(), replicates.end());
  const auto n = static_cast<double>(rows);
  const double z = student_quantile(level, rows - 1) * std::sqrt(n / (n - 1));
  const double below = std::erfc(z / std::numbers::sqrt2) / 2;
  return Interval{sorted_quantile(replicates, below), sorted_quantile(replicates, 1 - below)};
}

double exceedance(std::span<const double> statistics, double observed, double scale) {
  const double limit = observed + 1e-12 * std::max(1.0, std::abs(scale));
  const auto larger =
      std::count_if(statistics.begin(), statistics.end(), [&](double s) { return s > limit; });
  return static_cast<double>(larger + 1) / static_cast<double>(statistics.size() + 1);
}

double paired_bootstrap_p(std::span<const double> a, std::span<const double> b, double observed_a,
                          double observed_b) {
  std::vector<double> statistics = differences(a, b);
  const double mean = std::accumulate(statistics.begin(), statistics.end(), 0.0) /
                      static_cast<double>(statistics.size());
  for (double& s : statistics) s -= mean;
  return exceedance(statistics, std::abs(observed_a - observed_b),
                    std::max(observed_a, observed_b));
}

double randomization_p(std::span<const double> a, std::span<const double> b, double observed_a,
                       double observed_b) {
  return exceedance(differences(a, b), std::abs(observed_a - observed_b),
                    std::max(observed_a, observed_b));
}

}  // namespace masque::evaluate
