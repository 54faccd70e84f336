// The samplers of the seeded masks: XLNet's and transformers' spans.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/random/random.hpp"
#include "base/types.hpp"

namespace masque::mask {

/// How XLNet's preprocessing selects targets.
struct SpanSelection {
  Index predict = 0;  ///< exactly so many positions, if so many are not blocked
  Index alpha = 6;    ///< context of a span of m pieces: m·alpha/beta pieces
  Index beta = 1;     ///< see alpha; from 1
  Index longest = 5;  ///< spans of 1 … longest pieces, p(m) ∝ 1/m; 0: positions one by one
};

/// XLNet's _sample_mask on `n` pieces that each begin a word, as `selection` says, with numbers of
/// `draw`; returns `n` flags, 1 for selected. Draws spans of m pieces inside contexts of
/// m·alpha/beta, until `predict` positions are selected; what then is missing is filled at random
/// positions. A span that would reach the end is dropped, as there. Positions with blocked[i]
/// ([SEP], [CLS]) are never selected; it has n flags. Yang et al. 2019, arXiv:1906.08237;
/// data_utils.py.
std::vector<bool> select_spans(Index n, const SpanSelection& selection,
                               const std::vector<bool>& blocked, Draw& draw);

/// transformers' DataCollatorForPermutationLanguageModeling, with numbers of `draw`: spans of 1 … 5
/// in contexts of 6 times their length (plm_probability 1/6). Returns `n` flags, 1 for selected;
/// positions with blocked[i], n flags too, are never selected. There `n` must be even; here the
/// caller sees to it.
std::vector<bool> select_spans_hf(Index n, const std::vector<bool>& blocked, Draw& draw);

}  // namespace masque::mask
