#include <algorithm>
#include <cmath>
#include <complex>

#include "base/error.hpp"
#include "nn/position/offset_bias.hpp"
#include "nn/position/row_products.hpp"

namespace masque::nn {

Index disentangled_bucket(Index distance, Index buckets, Index max_distance) {
  const Index middle = buckets / 2;
  const Index length = std::abs(distance);
  if (buckets <= 0 || max_distance <= 0 || length <= middle) return distance;
  // In float, as the models were trained.
  const auto ratio = [&](Index x) {
    return std::log(static_cast<float>(static_cast<double>(x) / static_cast<double>(middle)));
  };
  const float step =
      std::ceil(ratio(length) / ratio(max_distance - 1) * static_cast<float>(middle - 1));
  const Index bucket = static_cast<Index>(step) + middle;
  return distance < 0 ? -bucket : bucket;
}

namespace {

/// Rows of the tables for distances query − key.
class PositionRows {
 public:
  PositionRows(Index span, Index buckets, Index max_distance, const PositionIds& places)
      : span_(span), buckets_(buckets), max_distance_(max_distance) {
    const OffsetBounds bounds = offset_bounds(places);
    first_ = row(-bounds.most);
    last_ = row(-bounds.least);
    if (!worth_a_table(bounds, places)) return;
    least_ = bounds.least;
    table_.reserve(static_cast<std::size_t>(bounds.count()));
    for (Index o = bounds.least; o <= bounds.most; ++o) table_.push_back(row(-o));
  }

  /// Buckets grow with the distance: the rows in use are first … last.
  Index first() const { return first_; }
  Index last() const { return last_; }
  Index of(Index offset) const {
    return table_.empty() ? row(-offset) : table_[static_cast<std::size_t>(offset - least_)];
  }

 private:
  Index row(Index distance) const {
    return std::clamp<Index>(disentangled_bucket(distance, buckets_, max_distance_) + span_, 0,
                             2 * span_ - 1);
  }

  Index span_;
  Index buckets_;
  Index max_distance_;
  Index first_ = 0;
  Index last_ = 0;
  Index least_ = 0;
  std::vector<Index> table_;
};

template <class T>
class DisentangledHead final : public HeadBias<T> {
 public:
  DisentangledHead(const DisentangledTerms<T>& terms, const PositionRows& rows,
                   const PositionIds& places, Index head, MatrixView<const T> query,
                   MatrixView<const T> key)
      : rows_(rows), places_(places), scale_(static_cast<T>(terms.scale)) {
    by_query_ = products(query, terms.position_key, head, of_query_);
    by_key_ = products(key, terms.position_query, head, of_key_);
  }

  void add(mask::Range queries, mask::Range keys, MatrixView<T> scores) const override {
    for (Index i = 0; i < queries.size(); ++i) {
      const Index query = queries.begin + i;
      const Index place = places_.queries[static_cast<std::size_t>(query)];
      for (Index j = 0; j < keys.size(); ++j) {
        const Index key = keys.begin + j;
        const Index row =
            rows_.of(places_.keys[static_cast<std::size_t>(key)] - place) - rows_.first();
        T term{};
        if (by_query_.data != nullptr) term += by_query_.at(query, row);
        if (by_key_.data != nullptr) term += by_key_.at(key, row);
        scores.at(i, j) += scale_ * term;
      }
    }
  }

 private:
  /// x times the rows of a table that occur; empty without a table.
  MatrixView<const T> products(MatrixView<const T> x, MatrixView<const T> table, Index head,
                               Matrix<T>& out) const {
    if (table.data == nullptr) return {};
    const Index size = x.columns;
    const Index count = rows_.last() - rows_.first() + 1;
    const MatrixView<const T> rows =
        table.middle_columns(head * size, size).middle_rows(rows_.first(), count);
    return RowProducts<T>(rows).of(x, 0, count, out);
  }

  const PositionRows& rows_;
  PositionIds places_;
  T scale_;
  Matrix<T> of_query_;
  Matrix<T> of_key_;
  MatrixView<const T> by_query_;
  MatrixView<const T> by_key_;
};

template <class T>
class DisentangledBias final : public ScoreBias<T> {
 public:
  DisentangledBias(const DisentangledTerms<T>& terms, const PositionIds& places)
      : terms_(terms),
        places_(places),
        rows_(terms.span, terms.buckets, terms.max_distance, places) {
    for (const MatrixView<const T>& table : {terms.position_key, terms.position_query}) {
      MASQUE_CHECK(table.data == nullptr || table.rows == 2 * terms.span);
    }
  }

  std::unique_ptr<HeadBias<T>> head(Index head, MatrixView<const T> query,
                                    MatrixView<const T> key) const override {
    return std::make_unique<DisentangledHead<T>>(terms_, rows_, places_, head, query, key);
  }

 private:
  DisentangledTerms<T> terms_;
  PositionIds places_;
  PositionRows rows_;
};

}  // namespace

template <class T>
std::unique_ptr<ScoreBias<T>> disentangled_bias(const DisentangledTerms<T>& terms,
                                                PositionIds places) {
  return std::make_unique<DisentangledBias<T>>(terms, places);
}

template std::unique_ptr<ScoreBias<float>> disentangled_bias(const DisentangledTerms<float>&,
                                                             PositionIds);
template std::unique_ptr<ScoreBias<double>> disentangled_bias(const DisentangledTerms<double>&,
                                                              PositionIds);
template std::unique_ptr<ScoreBias<std::complex<double>>> disentangled_bias(
    const DisentangledTerms<std::complex<double>>&, PositionIds);

}  // namespace masque::nn
