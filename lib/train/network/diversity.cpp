#include "train/network/diversity.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/string/parse_number.hpp"
#include "base/string/split.hpp"
#include "base/types.hpp"
#include "kernel/number/scalar.hpp"

namespace masque::train {

namespace {

// Of rounding: below it columns, rows or their deviations are alike.
constexpr double kAlike = 1e-7;

using kernel::reference::real_part;

template <class W>
struct Spread {
  W mean{};
  W deviation{};
};

template <class W>
Spread<W> spread_of(W sum, W squares_around_mean, double count) {
  using std::sqrt;
  Spread<W> out{sum / count, squares_around_mean / count};
  const double least = kAlike * real_part(out.mean);
  const bool alike = real_part(out.deviation) <= least * least;
  out.deviation = alike ? W{} : sqrt(out.deviation);
  return out;
}

template <class W>
Spread<W> spread_of(const std::vector<W>& values) {
  W sum{}, squares{};
  const auto count = static_cast<double>(values.size());
  for (const W& x : values) sum += x;
  for (const W& x : values) squares += (x - sum / count) * (x - sum / count);
  return spread_of(sum, squares, count);
}

/// x / y, or 0 where y is.
template <class W>
W ratio(W x, W y) {
  return y == W{} ? W{} : x / y;
}

/// D1, D2, D3 and the mutual information.
constexpr std::size_t kMeasures = 4;
using Slopes = std::array<double, kMeasures>;

/// The measures of a matrix; mutual information is one of rows that sum to 1.
template <class W>
class Measure {
 public:
  /// `p` has at least one row.
  explicit Measure(const Matrix<W>& p)
      : p_(p), m_(static_cast<double>(p.rows())), n_(static_cast<double>(p.columns())) {
    for (Index j = 0; j < p.columns(); ++j) {
      W sum{}, squares{};
      for (Index i = 0; i < p.rows(); ++i) sum += at(i, j);
      for (Index i = 0; i < p.rows(); ++i) squares += (at(i, j) - sum / m_) * (at(i, j) - sum / m_);
      const Spread<W> column = spread_of(sum, squares, m_);
      means_.push_back(column.mean);
      columns_.push_back(column.deviation);
    }
    for (Index i = 0; i < p.rows(); ++i) {
      W sum{}, squares{};
      for (Index j = 0; j < p.columns(); ++j) sum += at(i, j);
      for (Index j = 0; j < p.columns(); ++j)
        squares += (at(i, j) - sum / n_) * (at(i, j) - sum / n_);
      const Spread<W> row = spread_of(sum, squares, n_);
      row_means_.push_back(row.mean);
      rows_.push_back(row.deviation);
    }
    of_columns_ = spread_of(columns_);
    of_rows_ = spread_of(rows_);
  }

  std::array<W, kMeasures> values() const {
    using std::log;
    W information{};
    for (const W& mean : means_)
      if (real_part(mean) > 0) information -= mean * log(mean);
    for (Index i = 0; i < p_.rows(); ++i) {
      for (Index j = 0; j < p_.columns(); ++j)
        if (real_part(at(i, j)) > 0) information += at(i, j) * log(at(i, j)) / m_;
    }
    return {of_columns_.mean, of_columns_.deviation, of_rows_.deviation, information};
  }

  /// Σ_k slopes[k] · ∂D_k/∂p_ij, each element taken by itself.
  W slope(Index i, Index j, const Slopes& slopes) const {
    using std::log;
    const W& column = columns_[static_cast<std::size_t>(j)];
    const W& row = rows_[static_cast<std::size_t>(i)];
    const W& mean = means_[static_cast<std::size_t>(j)];
    const W by_column = ratio(at(i, j) - mean, m_ * column);
    const W by_row = ratio(at(i, j) - row_means_[static_cast<std::size_t>(i)], n_ * row);
    W sum = by_column * (slopes[0] / n_ +
                         slopes[1] * ratio(column - of_columns_.mean, n_ * of_columns_.deviation));
    sum += by_row * slopes[2] * ratio(row - of_rows_.mean, m_ * of_rows_.deviation);
    if (slopes[3] != 0 && real_part(at(i, j)) > 0)
      sum += slopes[3] / m_ * (log(at(i, j)) - log(mean));
    return sum;
  }

 private:
  const W& at(Index i, Index j) const { return p_.view().at(i, j); }

  const Matrix<W>& p_;
  double m_, n_;
  std::vector<W> means_, columns_, row_means_, rows_;
  Spread<W> of_columns_, of_rows_;
};

}  // namespace

Diversities parse_diversity(std::string_view text) {
  const auto refuse = [&] {
    throw UsageError(
        fmt::format("{}: found '{}', expected different measures ({}) with weights, for example "
                    "d2:0.1,d3:0.1",
                    field("diversity"), escape(text), fmt::join(kDiversityNames, ", ")));
  };
  Diversities out{};
  std::array<bool, kDiversities> given{};
  for (const std::string_view one : split(text, ',')) {
    const auto [name, argument] = split_at_first(one, ':');
    const auto* const found = std::ranges::find(kDiversityNames, name);
    const auto weight = argument ? parse_number<double>(*argument) : std::nullopt;
    if (found == kDiversityNames.end() || !weight || !std::isfinite(*weight)) refuse();
    const auto at = static_cast<std::size_t>(found - kDiversityNames.begin());
    if (given[at]) refuse();
    given[at] = true;
    out[at] = *weight;
  }
  return out;
}

template <class T>
std::array<Wide<T>, kDiversities> measure_diversity(MatrixView<const T> weights,
                                                    const Diversities& slopes,
                                                    MatrixView<T> d_weights) {
  using W = Wide<T>;
  std::vector<Index> rows;
  std::vector<W> sums;
  rows.reserve(static_cast<std::size_t>(weights.rows));
  sums.reserve(static_cast<std::size_t>(weights.rows));
  for (Index i = 0; i < weights.rows; ++i) {
    W sum{};
    for (Index j = 0; j < weights.columns; ++j) sum += static_cast<W>(weights.at(i, j));
    if (!(real_part(sum) > 0)) continue;
    rows.push_back(i);
    sums.push_back(sum);
  }
  if (rows.empty()) return {};
  Matrix<W> raw(std::ssize(rows), weights.columns);
  Matrix<W> p(std::ssize(rows), weights.columns);
  for (Index k = 0; k < p.rows(); ++k) {
    const auto at = static_cast<std::size_t>(k);
    for (Index j = 0; j < p.columns(); ++j) {
      raw.view().at(k, j) = static_cast<W>(weights.at(rows[at], j));
      p.view().at(k, j) = raw.view().at(k, j) / sums[at];
    }
  }
  const Measure<W> measure(p), measure_raw(raw);
  if constexpr (!std::is_same_v<T, std::complex<double>>) {
    const Slopes by_row{slopes[0], slopes[1], slopes[2], slopes[3]};
    const Slopes as_is{slopes[4], slopes[5], slopes[6], 0};
    std::vector<W> own(static_cast<std::size_t>(p.columns()));
    for (Index k = 0; d_weights.data != nullptr && k < p.rows(); ++k) {
      const auto at = static_cast<std::size_t>(k);
      // Back through the division by the sum of the row.
      W inner{};
      for (Index j = 0; j < p.columns(); ++j) {
        own[static_cast<std::size_t>(j)] = measure.slope(k, j, by_row);
        inner += own[static_cast<std::size_t>(j)] * p.view().at(k, j);
      }
      for (Index j = 0; j < p.columns(); ++j) {
        d_weights.at(rows[at], j) += static_cast<T>(
            (own[static_cast<std::size_t>(j)] - inner) / sums[at] + measure_raw.slope(k, j, as_is));
      }
    }
  } else {
    MASQUE_CHECK(d_weights.data == nullptr);
  }
  const std::array<W, kMeasures> of_rows = measure.values(), of_raw = measure_raw.values();
  return {of_rows[0], of_rows[1], of_rows[2], of_rows[3], of_raw[0], of_raw[1], of_raw[2]};
}

template std::array<double, kDiversities> measure_diversity(MatrixView<const float>,
                                                            const Diversities&, MatrixView<float>);
template std::array<double, kDiversities> measure_diversity(MatrixView<const double>,
                                                            const Diversities&, MatrixView<double>);
template std::array<std::complex<double>, kDiversities> measure_diversity(
    MatrixView<const std::complex<double>>, const Diversities&, MatrixView<std::complex<double>>);

}  // namespace masque::train
