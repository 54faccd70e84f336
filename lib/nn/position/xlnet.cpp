#include <algorithm>
#include <complex>

#include "base/error.hpp"
#include "nn/position/offset_bias.hpp"
#include "nn/position/row_products.hpp"

namespace masque::nn {

namespace {

/// A copy of the columns of a head with a vector added to each row.
template <class T>
Matrix<T> with_bias(MatrixView<const T> x, std::span<const T> bias, Index first) {
  Matrix<T> out = Matrix<T>::copy(x);
  for (Index i = 0; i < x.rows; ++i) {
    for (Index d = 0; d < x.columns; ++d) {
      out.view().at(i, d) += bias[static_cast<std::size_t>(first + d)];
    }
  }
  return out;
}

template <class T>
class XlnetHead final : public HeadBias<T> {
 public:
  XlnetHead(const XlnetTerms<T>& terms, const PositionIds& places, Index head, Index size)
      : terms_(terms),
        places_(places),
        consecutive_(consecutive(places.keys)),
        query_(with_bias(columns(terms.query, head, size), terms.position_bias, head * size)),
        relative_(columns(terms.relative, head, size)) {
    if (terms.segment_bias.empty()) return;
    const Matrix<T> query =
        with_bias(columns(terms.query, head, size), terms.segment_bias, head * size);
    const MatrixView<const T> table = columns(terms.segment_table, head, size);
    RowProducts<T>(table).of(query.view(), 0, 2, segment_);
  }

  void add(mask::Range queries, mask::Range keys, MatrixView<T> scores) const override {
    const auto place = [](std::span<const Index> places, Index i) {
      return places[static_cast<std::size_t>(i)];
    };
    const OffsetBounds bounds =
        offset_bounds({places_.queries.subspan(static_cast<std::size_t>(queries.begin),
                                               static_cast<std::size_t>(queries.size())),
                       places_.keys.subspan(static_cast<std::size_t>(keys.begin),
                                            static_cast<std::size_t>(keys.size()))});
    // Only the rows that this tile needs: the whole product would be as large as all scores.
    const Index first = terms_.first_distance + bounds.least;
    thread_local Matrix<T> products;
    const MatrixView<const T> terms =
        relative_.of(query_.view().middle_rows(queries.begin, queries.size()), first,
                     first + bounds.count(), products);
    MASQUE_CHECK(terms.data != nullptr);
    const T scale = static_cast<T>(terms_.scale);
    for (Index i = 0; i < queries.size(); ++i) {
      const Index query = place(places_.queries, queries.begin + i);
      T* row = scores.row(i);
      const T* from = terms.row(i);
      const Index shift = query + bounds.least;
      if (consecutive_) {
        from += place(places_.keys, keys.begin) - shift;
        for (Index j = 0; j < keys.size(); ++j) row[j] += scale * from[j];
      } else {
        for (Index j = 0; j < keys.size(); ++j) {
          row[j] += scale * from[place(places_.keys, keys.begin + j) - shift];
        }
      }
      if (!terms_.segment_bias.empty()) add_segments(queries.begin + i, keys, row);
    }
  }

 private:
  static MatrixView<const T> columns(const MatrixView<const T>& x, Index head, Index size) {
    return x.middle_columns(head * size, size);
  }

  void add_segments(Index query, mask::Range keys, T* row) const {
    const T scale = static_cast<T>(terms_.scale);
    const T same = scale * segment_.view().at(query, 0);
    const T other = scale * segment_.view().at(query, 1);
    const Index segment = terms_.query_segments[static_cast<std::size_t>(query)];
    const Index* segments = terms_.key_segments.data() + keys.begin;
    for (Index j = 0; j < keys.size(); ++j) row[j] += segments[j] == segment ? same : other;
  }

  const XlnetTerms<T>& terms_;
  PositionIds places_;
  bool consecutive_;
  Matrix<T> query_;
  RowProducts<T> relative_;
  Matrix<T> segment_;
};

template <class T>
class XlnetBias final : public ScoreBias<T> {
 public:
  XlnetBias(const XlnetTerms<T>& terms, const PositionIds& places)
      : terms_(terms), places_(places) {
    const OffsetBounds bounds = offset_bounds(places);
    MASQUE_CHECK(terms.first_distance + bounds.least >= 0 &&
                 terms.first_distance + bounds.most < terms.relative.rows);
    MASQUE_CHECK(terms.segment_bias.empty() ||
                 (terms.segment_table.rows == 2 &&
                  terms.query_segments.size() == places.queries.size() &&
                  terms.key_segments.size() == places.keys.size()));
  }

  std::unique_ptr<HeadBias<T>> head(Index head, MatrixView<const T> query,
                                    MatrixView<const T> /*key*/) const override {
    return std::make_unique<XlnetHead<T>>(terms_, places_, head, query.columns);
  }

 private:
  XlnetTerms<T> terms_;
  PositionIds places_;
};

}  // namespace

template <class T>
std::unique_ptr<ScoreBias<T>> xlnet_bias(const XlnetTerms<T>& terms, PositionIds places) {
  return std::make_unique<XlnetBias<T>>(terms, places);
}

template std::unique_ptr<ScoreBias<float>> xlnet_bias(const XlnetTerms<float>&, PositionIds);
template std::unique_ptr<ScoreBias<double>> xlnet_bias(const XlnetTerms<double>&, PositionIds);
template std::unique_ptr<ScoreBias<std::complex<double>>> xlnet_bias(
    const XlnetTerms<std::complex<double>>&, PositionIds);

}  // namespace masque::nn
