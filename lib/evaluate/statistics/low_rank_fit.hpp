// How well rows of weights can be made from queries and keys of a small key size: the low-rank
// bottleneck, measured. Bhojanapalli et al. 2020, arXiv:2002.07028; kexue.fm/archives/7325.
// Ranks of the weights that a model has: evaluate/attention/attention_stats.cpp.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/types.hpp"
#include "tensor/matrix.hpp"

namespace masque::evaluate {

/// A matrix (`n`, `n`): row i is softmax(z_i / `temperature`) of standard normal z_ij, which `seed`
/// draws. A small temperature makes rows hard: almost all weight on one key. Throws UsageError for
/// `n` < 1 and for a temperature outside of 0.02 … 1e6: a weight below would be 0 in double.
Matrix<double> random_weights(Index n, double temperature, std::uint64_t seed);

/// Which key sizes are fitted, and how long.
struct LowRankRequest {
  std::vector<Index> key_sizes;  ///< each at least 1
  Index restarts = 3;            ///< random starts, at least 1
  Index most_iterations = 2000;  ///< largest number of iterations of one start
  /// A start ends at a KL of at most this many nats, …
  double enough = 1e-12;
  /// … or where the last 50 iterations made less of it than this share of it.
  double progress = 1e-4;
  std::uint64_t seed = 1;  ///< seed of the random starts
};

/// The best fit of a key size.
struct LowRankRow {
  Index key_size = 0;    ///< columns of Q and K
  double kl = 0;         ///< the least that a random start reached: mean over rows, nats
  Index iterations = 0;  ///< number of iterations of that start
  /// Whether that start ended before `most_iterations`.
  bool settled = false;
  /// KL of the logits whose singular values beyond the first key_size are cut off: it needs no
  /// fitting, is not the least possible, and is 0 from `LowRankFit::rank` on.
  double truncated_kl = 0;
};

/// What fit_low_rank() found.
struct LowRankFit {
  /// Least key size that gives the weights exactly: the rank of the logs of the weights with the
  /// mean of each row taken off, singular values above 1e-10 of the largest. For weights in general
  /// n − 1: softmax does not see what all scores of a row share.
  Index rank = 0;
  std::vector<LowRankRow> rows;  ///< one a key size, in the order requested
};

/// Minimises the mean over rows of KL(P_i ‖ softmax(Q Kᵀ)_i) over free queries Q (n, key size) and
/// keys K (m, key size), for every key size of `request`. `weights` are P (n, m): positive, finite,
/// rows sum to 1 (to rounding).
///
/// L-BFGS (20 pairs, backtracking to an Armijo decrease of 1e-4) in double, full batch, gradients
/// by hand; entries start normal with variance 1/√(key size), so that scores have variance 1. One
/// thread; a function of its arguments alone. Cost of an iteration O(n m · key size); n = m = 32
/// with key sizes to 32 takes a second or two.
LowRankFit fit_low_rank(MatrixView<const double> weights, const LowRankRequest& request);

}  // namespace masque::evaluate
