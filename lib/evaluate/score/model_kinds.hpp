// Which kinds of scores a model supports.
#pragma once

#include "evaluate/score/score_kind.hpp"
#include "model/model.hpp"

namespace masque::evaluate {

/// The kind that suits the head and the streams of `design`, for a model opened with `options`: pll
/// for masked heads, tta for a T-TA, causal for causal heads, electra for discriminators, electric
/// for energies, maskless for regression. Throws InputError if the model has no head.
ScoreKind default_kind(const model::Design& design, const model::ModelOptions& options);

/// Throws InputError for a `design` with latent bottlenecks: it predicts the second of two copies
/// of a text, not tokens of one.
void check_reads_one_text(const model::Design& design);

/// Checks that a model of `design` supports `kind`; `options` are those with which it was opened.
/// Throws InputError if the kind needs another head or leaks (ScoreLeak::start in
/// evaluate/score/score_leak.hpp). Throws UsageError if `options` has keys, a query, or a mask of
/// words or a seed for a model of two streams, for which scoring makes masks itself.
void check_kind(ScoreKind kind, const model::Design& design, const model::ModelOptions& options);

}  // namespace masque::evaluate
