#include <complex>

#include "base/error.hpp"
#include "nn/position/pair_tables.hpp"
#include "nn/position/score_terms.hpp"

namespace masque::nn {

template <class T>
std::unique_ptr<PositionTerms<T>> xlnet_terms(const XlnetTerms<T>& terms, PositionIds positions) {
  std::vector<PairTables<T>> all(1);
  PairTables<T>& distances = all.front();
  distances.row = distance_rows(positions, terms.row);
  distances.scale = terms.scale;
  distances.by_query = terms.relative;
  distances.content_bias = terms.content_bias;
  distances.query_bias = terms.position_bias;
  distances.d_by_query = terms.d_relative;
  distances.d_content_bias = terms.d_content_bias;
  distances.d_query_bias = terms.d_position_bias;
  distances.owner = terms.projected;
  if (terms.segment_table.data != nullptr) {
    const auto& queries = terms.query_segments;
    const auto& keys = terms.key_segments;
    MASQUE_CHECK(queries.empty() == keys.empty());
    MASQUE_CHECK(queries.empty() || (queries.size() == positions.queries.size() &&
                                     keys.size() == positions.keys.size()));
    PairTables<T>& segments = all.emplace_back();
    segments.row = segment_rows(queries, keys);
    segments.scale = terms.scale;
    segments.by_query = terms.segment_table;
    segments.query_bias = terms.segment_bias;
    segments.d_by_query = terms.d_segment_table;
    segments.d_query_bias = terms.d_segment_bias;
  }
  return std::make_unique<PairTableTerms<T>>(std::move(all));
}

template std::unique_ptr<PositionTerms<float>> xlnet_terms(const XlnetTerms<float>&, PositionIds);
template std::unique_ptr<PositionTerms<double>> xlnet_terms(const XlnetTerms<double>&, PositionIds);
template std::unique_ptr<PositionTerms<std::complex<double>>> xlnet_terms(
    const XlnetTerms<std::complex<double>>&, PositionIds);

}  // namespace masque::nn
