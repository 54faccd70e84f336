#include <algorithm>
#include <cmath>
#include <complex>

#include "base/error.hpp"
#include "nn/position/pair_tables.hpp"
#include "nn/position/score_terms.hpp"

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

/// The row of both tables for pairs at a distance. It does not fall as the distance grows.
template <class T>
auto row_by_distance(const DisentangledTerms<T>& terms) {
  return
      [span = terms.span, buckets = terms.buckets, farthest = terms.max_distance](Index distance) {
        return std::clamp<Index>(disentangled_bucket(distance, buckets, farthest) + span, 0,
                                 2 * span - 1);
      };
}

}  // namespace

template <class T>
std::pair<Index, Index> disentangled_rows(const DisentangledTerms<T>& terms,
                                          PositionIds positions) {
  if (positions.queries.empty() || positions.keys.empty()) return {0, 0};
  const auto [first_query, last_query] = std::ranges::minmax(positions.queries);
  const auto [first_key, last_key] = std::ranges::minmax(positions.keys);
  const auto row = row_by_distance(terms);
  const Index first = row(first_query - last_key);
  return {first, row(last_query - first_key) - first + 1};
}

template <class T>
std::unique_ptr<PositionTerms<T>> disentangled_terms(const DisentangledTerms<T>& terms,
                                                     PositionIds positions) {
  for (const MatrixView<const T>& table : {terms.position_key, terms.position_query})
    MASQUE_CHECK(table.data == nullptr || table.rows == 2 * terms.span);
  std::vector<PairTables<T>> all(1);
  PairTables<T>& tables = all.front();
  tables.row = distance_rows(positions, row_by_distance(terms));
  tables.scale = terms.scale;
  tables.by_query = terms.position_key;
  tables.by_key = terms.position_query;
  tables.d_by_query = terms.d_position_key;
  tables.d_by_key = terms.d_position_query;
  tables.owner = terms.projected;
  return std::make_unique<PairTableTerms<T>>(std::move(all));
}

template std::pair<Index, Index> disentangled_rows(const DisentangledTerms<float>&, PositionIds);
template std::pair<Index, Index> disentangled_rows(const DisentangledTerms<double>&, PositionIds);
template std::pair<Index, Index> disentangled_rows(const DisentangledTerms<std::complex<double>>&,
                                                   PositionIds);
template std::unique_ptr<PositionTerms<float>> disentangled_terms(const DisentangledTerms<float>&,
                                                                  PositionIds);
template std::unique_ptr<PositionTerms<double>> disentangled_terms(const DisentangledTerms<double>&,
                                                                   PositionIds);
template std::unique_ptr<PositionTerms<std::complex<double>>> disentangled_terms(
    const DisentangledTerms<std::complex<double>>&, PositionIds);

}  // namespace masque::nn
