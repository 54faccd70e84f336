// In which ways a text is scored, and which of them a model can do.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "model/model.hpp"

namespace masque::probe {

/// The masked kinds differ in M(t), what is hidden while token t is predicted.
enum class ScoreKind {
  kPll,           ///< {t}: Shin 2019, arXiv:1905.06655; Salazar 2020, arXiv:1910.14659
  kPllWordL2r,    ///< t and later pieces of its word: Kauf and Ivanova 2023, arXiv:2305.10588
  kPllWord,       ///< all pieces of t's word
  kPllGlobalL2r,  ///< t and everything behind it
  kTta,           ///< one pass; each position predicts its own token without reading it
  kCausal,        ///< one pass; each position predicts the next token
  kElectra,       ///< one pass of a discriminator: log σ(−logit), that a token is original
};

/// "pll", "pll-word-l2r", …
std::string_view kind_name(ScoreKind kind);
/// All of them, in the order above.
std::span<const ScoreKind> all_kinds();

/// Whether the kind hides tokens, one copy of the text for each.
bool is_masked(ScoreKind kind);

/// What the head and the streams of a model are made for: masked heads pll, those of T-TA tta,
/// causal heads causal, discriminators electra. Throws InputError if the model has no head.
ScoreKind default_kind(const model::Design& design, const model::ModelOptions& options);

/// Throws InputError if the kind is not what the model computes: another head is needed, or it
/// leaks (LeakCheck::start of probe/leak_check.hpp). Throws UsageError for masks, keys and query of
/// `options` with a model of two streams, which scoring gives masks of its own. `options` are those
/// with which the model was opened.
void check_kind(ScoreKind kind, const model::Design& design, const model::ModelOptions& options);

}  // namespace masque::probe
