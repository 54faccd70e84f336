// Which kinds of scores a model can do.
#pragma once

#include "model/model.hpp"
#include "probe/score/score_kind.hpp"

namespace masque::probe {

/// What the head and the streams of a model are made for: masked heads pll, those of T-TA tta,
/// causal heads causal, discriminators electra, energies electric, regression maskless. Throws
/// InputError if the model has no head.
ScoreKind default_kind(const model::Design& design, const model::ModelOptions& options);

/// Throws InputError for a model with latent bottlenecks: it predicts the second of two copies of a
/// text, not tokens of one.
void check_reads_one_text(const model::Design& design);

/// Throws InputError if the kind is not what the model computes: another head is needed, or it
/// leaks (ScoreLeak::start of probe/score/score_leak.hpp). Throws UsageError for masks, keys and
/// query of `options` with a model of two streams, which scoring gives masks of its own. `options`
/// are those with which the model was opened.
void check_kind(ScoreKind kind, const model::Design& design, const model::ModelOptions& options);

}  // namespace masque::probe
