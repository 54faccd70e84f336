#include "evaluate/states/ridge.hpp"

// One thread: the result must not depend on how many there are.
#define EIGEN_DONT_PARALLELIZE
#include <Eigen/Cholesky>
#include <algorithm>
#include <limits>

#include "base/error.hpp"

namespace masque::evaluate {

namespace {

using RowMajor = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

/// Rows that are multiplied at a time.
constexpr Index kBlock = 256;

/// What a regression needs to know of some rows.
struct RidgeSums {
  double rows = 0;
  Eigen::VectorXd x, y;
  Eigen::MatrixXd xx, xy;

  RidgeSums(Index d, Index k)
      : x(Eigen::VectorXd::Zero(d)),
        y(Eigen::VectorXd::Zero(k)),
        xx(Eigen::MatrixXd::Zero(d, d)),
        xy(Eigen::MatrixXd::Zero(d, k)) {}

  void add(const RowMajor& a, const RowMajor& b) {
    rows += static_cast<double>(a.rows());
    x += a.colwise().sum().transpose();
    y += b.colwise().sum().transpose();
    xx.noalias() += a.transpose() * a;
    xy.noalias() += a.transpose() * b;
  }
};

struct Regression {
  Eigen::MatrixXd weight;  ///< (d, k)
  Eigen::RowVectorXd intercept;
};

Regression fit(const RidgeSums& all, const RidgeSums& left_out, double ridge) {
  const double n = all.rows - left_out.rows;
  const Eigen::VectorXd x = (all.x - left_out.x) / n;
  const Eigen::VectorXd y = (all.y - left_out.y) / n;
  Eigen::MatrixXd xx = all.xx - left_out.xx - n * x * x.transpose();
  const Eigen::MatrixXd xy = all.xy - left_out.xy - n * x * y.transpose();
  const Index d = x.size();
  const double penalty = ridge * xx.trace() / static_cast<double>(d);
  Regression out;
  if (penalty > 0) {
    xx.diagonal().array() += penalty;
    out.weight = xx.ldlt().solve(xy);
  } else {
    out.weight = Eigen::MatrixXd::Zero(d, y.size());  // nothing varies
  }
  out.intercept = y.transpose() - x.transpose() * out.weight;
  return out;
}

/// The rows of a fold, `kBlock` at a time.
template <class Use>
void each_block(std::span<const Index> fold, Index wanted, const Use& use) {
  std::vector<Index> rows;
  for (std::size_t i = 0; i < fold.size(); ++i) {
    if (fold[i] == wanted) rows.push_back(static_cast<Index>(i));
    if (std::ssize(rows) == kBlock) {
      use(rows);
      rows.clear();
    }
  }
  if (!rows.empty()) use(rows);
}

template <class T>
RowMajor gather(MatrixView<const T> from, const std::vector<Index>& rows,
                const Eigen::VectorXd& shift) {
  RowMajor out(std::ssize(rows), from.columns);
  for (std::size_t r = 0; r < rows.size(); ++r) {
    for (Index c = 0; c < from.columns; ++c) {
      out(static_cast<Index>(r), c) = static_cast<double>(from.at(rows[r], c)) - shift(c);
    }
  }
  return out;
}

template <class T>
Eigen::VectorXd mean_of(MatrixView<const T> x) {
  Eigen::VectorXd mean = Eigen::VectorXd::Zero(x.columns);
  for (Index i = 0; i < x.rows; ++i) {
    for (Index c = 0; c < x.columns; ++c) mean(c) += static_cast<double>(x.at(i, c));
  }
  return mean / static_cast<double>(std::max<Index>(x.rows, 1));
}

}  // namespace

Matrix<double> ridge_predictions(MatrixView<const float> features, MatrixView<const double> targets,
                                 std::span<const Index> fold, Index folds, double ridge) {
  MASQUE_CHECK(features.rows == targets.rows && features.rows == std::ssize(fold) && folds >= 2);
  // Features are moved to their mean first: sums of squares then lose no digits to it.
  const Eigen::VectorXd x_mean = mean_of(features);
  const Eigen::VectorXd y_mean = mean_of(targets);
  std::vector<RidgeSums> parts(static_cast<std::size_t>(folds),
                               RidgeSums(features.columns, targets.columns));
  RidgeSums all(features.columns, targets.columns);
  for (Index f = 0; f < folds; ++f) {
    each_block(fold, f, [&](const std::vector<Index>& rows) {
      const RowMajor x = gather(features, rows, x_mean);
      const RowMajor y = gather(targets, rows, y_mean);
      parts[static_cast<std::size_t>(f)].add(x, y);
      all.add(x, y);
    });
  }
  Matrix<double> out(targets.rows, targets.columns);
  for (Index f = 0; f < folds; ++f) {
    const RidgeSums& part = parts[static_cast<std::size_t>(f)];
    if (part.rows == 0) continue;
    MASQUE_CHECK(part.rows < all.rows);
    const Regression regression = fit(all, part, ridge);
    each_block(fold, f, [&](const std::vector<Index>& rows) {
      RowMajor y = gather(features, rows, x_mean) * regression.weight;
      y.rowwise() += regression.intercept + y_mean.transpose();
      for (std::size_t r = 0; r < rows.size(); ++r) {
        for (Index c = 0; c < targets.columns; ++c) {
          out.view().at(rows[r], c) = y(static_cast<Index>(r), c);
        }
      }
    });
  }
  return out;
}

double r_squared(MatrixView<const double> targets, MatrixView<const double> predictions) {
  MASQUE_CHECK(targets.rows == predictions.rows && targets.columns == predictions.columns);
  const Eigen::VectorXd mean = mean_of(targets);
  double left = 0, all = 0;
  for (Index i = 0; i < targets.rows; ++i) {
    for (Index c = 0; c < targets.columns; ++c) {
      const double y = targets.at(i, c);
      left += (y - predictions.at(i, c)) * (y - predictions.at(i, c));
      all += (y - mean(c)) * (y - mean(c));
    }
  }
  return all > 0 ? 1 - left / all : std::numeric_limits<double>::quiet_NaN();
}

}  // namespace masque::evaluate
