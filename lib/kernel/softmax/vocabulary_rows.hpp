// Loops over logits that are stored with the vocabulary as rows: one word, and a number of rows of
// the model side by side.
#pragma once

#include <cstdint>

#include "base/types.hpp"

namespace masque::kernel {

/// Adds `bias`, the bias of `word`, to its `n` logits `x`, one for each row r; where x[r] is then
/// greater than largest[r], `largest`[r] and `place`[r] become x[r] and `word`.
void track_largest(std::int32_t word, float bias, Index n, float* x, float* largest,
                   std::int32_t* place);

/// `x` = exp(x − `largest`), and `sum` += x, `n` elements each. x ≤ largest.
void exp_below(const float* largest, Index n, float* x, float* sum);

/// `total` += `sum` · exp(`largest` − `most`), `n` elements each. largest ≤ most.
void add_rescaled(const float* sum, const float* largest, const float* most, Index n,
                  double* total);

/// `factor` = exp(`largest` − `most`) · `share`, `n` elements each. largest ≤ most.
void rescale_factors(const float* largest, const float* most, const float* share, Index n,
                     float* factor);

/// `x` ⊙= `factor`, `n` elements each.
void scale_columns(const float* factor, Index n, float* x);

}  // namespace masque::kernel
