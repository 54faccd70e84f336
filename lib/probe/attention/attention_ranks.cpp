#include "probe/attention/attention_ranks.hpp"

#include <Eigen/SVD>
#include <cmath>
#include <limits>

namespace masque::probe {

namespace {

constexpr double kSmallest = 1e-6;

template <class T>
HeadRanks ranks(MatrixView<const T> x) {
  constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  Eigen::MatrixXd matrix(x.rows, x.columns);
  for (Index i = 0; i < x.rows; ++i) {
    for (Index j = 0; j < x.columns; ++j) matrix(i, j) = static_cast<double>(x.at(i, j));
  }
  if (!matrix.allFinite()) return {kNone, kNone};
  const Eigen::BDCSVD<Eigen::MatrixXd> decomposition(matrix);
  const Eigen::VectorXd& values = decomposition.singularValues();
  const double sum = values.sum();
  if (!(sum > 0)) return {kNone, kNone};
  HeadRanks out;
  double entropy = 0;
  for (const double value : values) {
    if (value > kSmallest * values[0]) ++out.numeric;
    if (value > 0) entropy -= value / sum * std::log(value / sum);
  }
  out.effective = std::exp(entropy);
  return out;
}

}  // namespace

HeadRanks ranks_of(MatrixView<const float> x) { return ranks(x); }
HeadRanks ranks_of(MatrixView<const double> x) { return ranks(x); }

}  // namespace masque::probe
