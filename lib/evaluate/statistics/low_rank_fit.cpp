#include "evaluate/statistics/low_rank_fit.hpp"

// One thread: the result must not depend on how many there are.
#define EIGEN_DONT_PARALLELIZE
#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <deque>
#include <optional>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/random/random.hpp"
#include "base/thread/interrupt.hpp"

namespace masque::evaluate {

namespace {

using Eigen::MatrixXd;
using Eigen::VectorXd;

/// Rows of log softmax.
MatrixXd log_softmax(const MatrixXd& scores) {
  MatrixXd out = scores.colwise() - scores.rowwise().maxCoeff();
  const VectorXd log_sums = out.array().exp().rowwise().sum().log();
  out.colwise() -= log_sums;
  return out;
}

/// What is minimised: a function of Q and K, one after the other in one vector.
class Divergence {
 public:
  Divergence(const MatrixXd& weights, const MatrixXd& logs, Index key_size)
      : weights_(weights), logs_(logs), key_size_(key_size) {}

  Index size() const { return (weights_.rows() + weights_.cols()) * key_size_; }

  /// Mean KL of rows of scores.
  double of_scores(const MatrixXd& scores, MatrixXd* fitted_logs = nullptr) const {
    MatrixXd fitted = log_softmax(scores);
    const double kl = (weights_.array() * (logs_ - fitted).array()).sum();
    if (fitted_logs != nullptr) *fitted_logs = std::move(fitted);
    return kl / static_cast<double>(weights_.rows());
  }

  double operator()(const VectorXd& x, VectorXd& gradient) const {
    throw_if_interrupted();
    const Index n = weights_.rows();
    const Index m = weights_.cols();
    const Eigen::Map<const MatrixXd> q(x.data(), n, key_size_);
    const Eigen::Map<const MatrixXd> k(x.data() + n * key_size_, m, key_size_);
    const MatrixXd scores = q * k.transpose();
    MatrixXd fitted;
    const double kl = of_scores(scores, &fitted);
    // ∂KL_i / ∂s_ij = softmax(s_i)_j − P_ij
    const MatrixXd slope = (fitted.array().exp().matrix() - weights_) / static_cast<double>(n);
    gradient.resize(size());
    Eigen::Map<MatrixXd>(gradient.data(), n, key_size_) = slope * k;
    Eigen::Map<MatrixXd>(gradient.data() + n * key_size_, m, key_size_) = slope.transpose() * q;
    return kl;
  }

 private:
  const MatrixXd& weights_;
  const MatrixXd& logs_;
  Index key_size_;
};

/// −H g by the last steps and changes of the gradient: Nocedal 1980, doi:10.2307/2006193.
class Directions {
 public:
  VectorXd operator()(const VectorXd& gradient) const {
    VectorXd direction = -gradient;
    std::vector<double> shares(pairs_.size());
    for (std::size_t i = pairs_.size(); i-- > 0;) {
      shares[i] = pairs_[i].step.dot(direction) / pairs_[i].product;
      direction -= shares[i] * pairs_[i].change;
    }
    if (!pairs_.empty()) {
      direction *= pairs_.back().product / pairs_.back().change.squaredNorm();
    }
    for (std::size_t i = 0; i < pairs_.size(); ++i) {
      const double share = pairs_[i].change.dot(direction) / pairs_[i].product;
      direction += (shares[i] - share) * pairs_[i].step;
    }
    return direction;
  }
  void add(VectorXd step, VectorXd change) {
    const double product = step.dot(change);
    // Without curvature the pair would make directions that do not descend.
    if (!(product > 1e-10 * step.norm() * change.norm())) return;
    if (pairs_.size() == kPairs) pairs_.pop_front();
    pairs_.push_back({std::move(step), std::move(change), product});
  }
  bool empty() const { return pairs_.empty(); }
  void clear() { pairs_.clear(); }

 private:
  static constexpr std::size_t kPairs = 20;
  struct Pair {
    VectorXd step, change;
    double product;
  };
  std::deque<Pair> pairs_;
};

struct Reached {
  double kl = 0;
  Index iterations = 0;
  bool settled = false;
};

/// From `x` downhill until one of the rules of `LowRankRequest` holds.
Reached descend(const Divergence& divergence, const LowRankRequest& request, VectorXd x) {
  constexpr Index kWindow = 50;
  VectorXd gradient, next_gradient;
  Reached out;
  out.kl = divergence(x, gradient);
  double before_window = out.kl;
  Directions directions;
  for (; out.iterations < request.most_iterations; ++out.iterations) {
    if (out.kl <= request.enough) break;
    if (out.iterations > 0 && out.iterations % kWindow == 0) {
      if (before_window - out.kl < request.progress * before_window) break;
      before_window = out.kl;
    }
    VectorXd direction = directions(gradient);
    double slope = direction.dot(gradient);
    if (!(slope < 0)) {
      directions.clear();
      direction = -gradient;
      slope = -gradient.squaredNorm();
    }
    // Without pairs there is no scale yet: begin with a step of length 1 at most.
    double length = directions.empty() ? std::min(1.0, 1 / direction.norm()) : 1;
    constexpr double kShortest = 1e-12;
    VectorXd step = length * direction;
    double next = divergence(x + step, next_gradient);
    while (!(next <= out.kl + 1e-4 * length * slope) && length > kShortest) {
      length /= 2;
      step = length * direction;
      next = divergence(x + step, next_gradient);
    }
    if (!(next < out.kl)) {
      if (directions.empty()) break;  // not even the gradient leads down: rounding
      directions.clear();
      continue;
    }
    directions.add(step, next_gradient - gradient);
    x += step;
    gradient.swap(next_gradient);
    out.kl = next;
  }
  out.settled = out.iterations < request.most_iterations;
  // KL is not negative; sums of rounded numbers may be.
  out.kl = std::max(out.kl, 0.0);
  return out;
}

VectorXd random_start(Index size, Index key_size, const RandomStream& stream) {
  VectorXd x(size);
  stream.normal(0, static_cast<std::size_t>(size), x.data());
  return x / std::sqrt(std::sqrt(static_cast<double>(key_size)));
}

}  // namespace

Matrix<double> random_weights(Index n, double temperature, std::uint64_t seed) {
  if (n < 1) throw UsageError(fmt::format("{} rows of weights, expected at least 1", n));
  if (!(temperature >= 0.02 && temperature <= 1e6)) {
    throw UsageError(fmt::format("the temperature is {}, expected 0.02 to 1e6", temperature));
  }
  Matrix<double> out(n, n);
  RandomStream(seed, "low rank weights").normal(0, out.span().size(), out.data());
  for (Index i = 0; i < n; ++i) {
    const std::span<double> row = out.view().row_span(i);
    const double most = *std::max_element(row.begin(), row.end());
    double sum = 0;
    for (double& x : row) sum += x = std::exp((x - most) / temperature);
    for (double& x : row) x /= sum;
  }
  return out;
}

LowRankFit fit_low_rank(MatrixView<const double> weights, const LowRankRequest& request) {
  MASQUE_CHECK(!weights.empty() && request.restarts >= 1);
  MatrixXd p(weights.rows, weights.columns);
  for (Index i = 0; i < weights.rows; ++i) {
    for (Index j = 0; j < weights.columns; ++j) {
      MASQUE_CHECK(weights.at(i, j) > 0);
      p(i, j) = weights.at(i, j);
    }
  }
  const MatrixXd logs = p.array().log();
  const MatrixXd centred = logs.colwise() - logs.rowwise().mean();
  // From there on it takes a second and more, without a place to look for signals.
  constexpr Index kLongDecomposition = 768;
  std::optional<SignalsKill> long_call;
  if (weights.rows >= kLongDecomposition) long_call.emplace();
  const Eigen::BDCSVD<MatrixXd> svd(centred, Eigen::ComputeThinU | Eigen::ComputeThinV);
  long_call.reset();
  const VectorXd& values = svd.singularValues();
  LowRankFit out;
  out.rank = (values.array() > 1e-10 * values(0)).count();
  for (const Index key_size : request.key_sizes) {
    MASQUE_CHECK(key_size >= 1);
    const Divergence divergence(p, logs, key_size);
    LowRankRow row;
    row.key_size = key_size;
    const Index kept = std::min<Index>(key_size, values.size());
    row.truncated_kl = std::max(
        0.0, divergence.of_scores(svd.matrixU().leftCols(kept) * values.head(kept).asDiagonal() *
                                  svd.matrixV().leftCols(kept).transpose()));
    for (Index start = 0; start < request.restarts; ++start) {
      const RandomStream stream(request.seed, "low rank start", static_cast<std::uint64_t>(start));
      const Reached reached =
          descend(divergence, request, random_start(divergence.size(), key_size, stream));
      if (start > 0 && !(reached.kl < row.kl)) continue;
      row.kl = reached.kl;
      row.iterations = reached.iterations;
      row.settled = reached.settled;
    }
    out.rows.push_back(row);
  }
  return out;
}

}  // namespace masque::evaluate
