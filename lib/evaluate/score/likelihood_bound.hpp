// A lower bound on the log-likelihood of a text under masked diffusion, from random sets of hidden
// tokens.
//
// The log-likelihood of n tokens is at least
//     E_l E_S (n/l) Σ_{i in S} log p(x_i | the tokens outside S),
// l uniform in 1 … n and S uniform among the sets of l tokens. It equals the integral over the rate
// t of (1/t) E_S[Σ_{i in S} log p], each token in S with probability t (MDLM, Sahoo et al. 2024,
// arXiv:2406.07524), and draws of it vary less (LLaDA, Nie et al. 2025, arXiv:2502.09992). Under
// block diffusion each block has its own l and S, and reads the blocks before it without noise
// (Arriola et al. 2025, arXiv:2503.09573); the bounds of blocks add up.
#pragma once

#include <vector>

#include "base/random/random.hpp"
#include "base/types.hpp"

namespace masque::evaluate {

/// The tokens that one draw hides.
struct HiddenTokens {
  std::vector<Index> places;    ///< ascending
  std::vector<double> weights;  ///< n/l of each
};

/// `draws` sets of hidden tokens among the places [begin, end), in blocks of `block_size` places
/// from 0 (0: one block). The numbers l of the draws are spread evenly over 1 … n, so that their
/// mean varies less than that of independent draws; with as many draws as tokens each l comes once.
/// Random numbers are those of `draw`.
std::vector<HiddenTokens> draw_hidden(Index begin, Index end, Index block_size, Index draws,
                                      Draw& draw);

/// The variance of the mean of at least two draws, from their `values`. Computed as if the draws
/// were independent, so on average too large.
double variance_of_mean(const std::vector<double>& values);

}  // namespace masque::evaluate
