#include "evaluate/states/whitening.hpp"

#include <cmath>

// One thread: the result must not depend on how many there are.
#define EIGEN_DONT_PARALLELIZE
#include <Eigen/Eigenvalues>

#include <fmt/format.h>

#include "base/error.hpp"

namespace masque::evaluate {

namespace {

using RowMajor = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

constexpr double kSmallestVariance = 1e-12;

}  // namespace

std::vector<double> Whitening::apply(std::span<const double> x) const {
  MASQUE_CHECK(x.size() == mean.size());
  std::vector<double> out(static_cast<std::size_t>(weight.columns()));
  const MatrixView<const double> w = weight.view();
  for (Index i = 0; i < w.rows; ++i) {
    const double centred = x[static_cast<std::size_t>(i)] - mean[static_cast<std::size_t>(i)];
    for (Index j = 0; j < w.columns; ++j) out[static_cast<std::size_t>(j)] += centred * w.at(i, j);
  }
  return out;
}

Whitening fit_whitening(MatrixView<const double> vectors, Index kept) {
  MASQUE_CHECK(kept >= 1 && kept <= vectors.columns && vectors.stride == vectors.columns);
  if (vectors.rows < 2) {
    throw InputError(fmt::format(
        "whitening: {} vectors, expected more than the {} dimensions to keep", vectors.rows, kept));
  }
  const Eigen::Map<const RowMajor> x(vectors.data, vectors.rows, vectors.columns);
  const Eigen::RowVectorXd mean = x.colwise().mean();
  const RowMajor centred = x.rowwise() - mean;
  const Eigen::MatrixXd covariance =
      centred.transpose() * centred / static_cast<double>(vectors.rows - 1);
  const Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> solver(covariance);
  const Eigen::VectorXd& values = solver.eigenvalues();  // ascending
  const Index size = vectors.columns;
  const double least = kSmallestVariance * values(size - 1);
  Index rank = 0;
  for (Index i = 0; i < size; ++i) rank += values(i) > least ? 1 : 0;
  if (rank < kept) {
    throw InputError(fmt::format(
        "whitening: the vectors span {} dimensions, expected at least the {} to keep ({})", rank,
        kept, field("dim")));
  }
  Whitening out;
  out.mean.assign(mean.begin(), mean.end());
  out.weight = Matrix<double>(size, kept);
  const MatrixView<double> weight = out.weight.view();
  for (Index j = 0; j < kept; ++j) {
    const Index from = size - 1 - j;
    const Eigen::VectorXd column = solver.eigenvectors().col(from);
    Eigen::Index largest = 0;
    column.cwiseAbs().maxCoeff(&largest);
    const double sign = column(largest) < 0 ? -1 : 1;
    const double scale = sign / std::sqrt(values(from));
    for (Index i = 0; i < size; ++i) weight.at(i, j) = column(i) * scale;
  }
  return out;
}

}  // namespace masque::evaluate
